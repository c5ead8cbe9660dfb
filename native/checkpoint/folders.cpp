#include "native/checkpoint/folders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>

#include "native/checkpoint/file.hpp"

namespace ringlet::native {

namespace {

constexpr std::string_view kStep = "step-";
constexpr std::string_view kReplaced = ".replaced-";
constexpr std::string_view kSaving = ".saving-";
constexpr std::string_view kRemoving = ".removing-";

std::optional<StepFolder> parse(const std::string& name) {
  const auto end = std::min(name.find('.'), name.size());
  if (!name.starts_with(kStep) || end == kStep.size()) return std::nullopt;
  std::uint64_t step = 0;
  const auto [stop, error] = std::from_chars(name.data() + kStep.size(), name.data() + end, step);
  if (error != std::errc() || stop != name.data() + end || name.substr(0, end) != step_name(step)) return std::nullopt;
  const auto rest = std::string_view(name).substr(end);
  if (!rest.empty() && !rest.starts_with(kReplaced)) return std::nullopt;
  return StepFolder{step, rest.empty(), name};
}

std::vector<std::string> list_names(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory.empty() ? "." : directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory) throw_io_error(directory, fmt::format("cannot be read: {}", error.message()));
  return names;
}

/// The folder is renamed first, because a checkpoint that is removed only in part would look damaged.
void remove_whole(const std::filesystem::path& directory, const std::string& name) {
  std::error_code error;
  const auto removing = directory / (name.starts_with(kRemoving) ? name : std::string(kRemoving) + name);
  std::filesystem::rename(directory / name, removing, error);
  if (!error) std::filesystem::remove_all(removing, error);
}

}  // namespace

std::string step_name(std::uint64_t step) { return fmt::format("{}{:08}", kStep, step); }
std::string saving_name(std::uint64_t step, const std::string& id) { return fmt::format("{}{}-{}", kSaving, step_name(step), id); }
std::string replaced_name(std::uint64_t step, const std::string& id) { return fmt::format("{}{}{}", step_name(step), kReplaced, id); }

std::vector<StepFolder> list_step_folders(const std::filesystem::path& directory) {
  std::vector<StepFolder> folders;
  for (const std::string& name : list_names(directory))
    if (auto folder = parse(name)) folders.push_back(std::move(*folder));
  std::sort(folders.begin(), folders.end(), [](const StepFolder& a, const StepFolder& b) {
    return std::tie(b.step, b.in_place, b.name) < std::tie(a.step, a.in_place, a.name);
  });
  return folders;
}

void clean(const std::filesystem::path& directory, std::uint64_t step, int keep) {
  int kept = 0;
  for (const StepFolder& folder : list_step_folders(directory))
    if (!folder.in_place || (folder.step <= step && ++kept > keep)) remove_whole(directory, folder.name);
  for (const std::string& name : list_names(directory))
    if (name.starts_with(kSaving) || name.starts_with(kRemoving)) remove_whole(directory, name);
}

}  // namespace ringlet::native
