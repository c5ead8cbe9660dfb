#include "tools/launch/rank_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

extern char** environ;

namespace ringlet::launch {

namespace {

constexpr std::array<std::string_view, 13> kReserved{
    "RINGLET_TERMINAL_COLUMNS", "RINGLET_RANK",    "RINGLET_WORLD_SIZE", "RINGLET_COORDINATOR", "RINGLET_COORDINATOR_FD",
    "RINGLET_HOSTFILE",         "MLX_RANK",        "MLX_HOSTFILE",       "MLX_WORLD_SIZE",      "RINGLET_GUESTS",
    "RINGLET_LISTEN",           "RINGLET_PAGE_FD", "RINGLET_PRESENCE_FD"};

std::string_view name_part(std::string_view entry) { return entry.substr(0, entry.find('=')); }

}  // namespace

bool is_reserved_variable(std::string_view name) { return std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end(); }

std::string make_prefix(const LaunchOptions& options, int rank) {
  if (!options.prefix) return {};
  if (!options.labels.empty()) return fmt::format("[{}] ", options.labels[static_cast<std::size_t>(rank)]);
  return fmt::format("[{:>{}}] ", rank, fmt::formatted_size("{}", options.world_size - 1));
}

std::vector<std::string> make_rank_environment(const LaunchOptions& options, int rank, const std::string& coordinator) {
  const auto replaced = [&](std::string_view name) {
    return is_reserved_variable(name) ||
           std::any_of(options.environment.begin(), options.environment.end(), [&](const auto& added) { return added.first == name; });
  };
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!replaced(name_part(*entry))) result.emplace_back(*entry);
  result.push_back(fmt::format("RINGLET_RANK={}", rank));
  result.push_back(fmt::format("RINGLET_WORLD_SIZE={}", options.world_size + options.guests));
  result.push_back(fmt::format("RINGLET_COORDINATOR={}", coordinator));
  if (options.guests > 0) {
    result.push_back(fmt::format("RINGLET_GUESTS={}", options.guests));
    result.push_back(fmt::format("RINGLET_LISTEN={}", options.listen_at.host));
  }
  if (options.terminal_columns) {
    const int columns = *options.terminal_columns - (static_cast<int>(make_prefix(options, rank).size()));
    result.push_back(fmt::format("RINGLET_TERMINAL_COLUMNS={}", std::max(columns, 0)));
  }
  for (std::size_t i = 0; i < options.environment.size(); ++i) {
    const std::string &name = options.environment[i].first, &value = options.environment[i].second;
    const auto same = [&](const auto& later) { return later.first == name; };
    // The last of several settings of one name holds, as with repeated options anywhere.
    if (std::none_of(options.environment.begin() + static_cast<std::ptrdiff_t>(i) + 1, options.environment.end(), same))
      result.push_back(name + "=" + value);
  }
  return result;
}

}  // namespace ringlet::launch
