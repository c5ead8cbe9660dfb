#include "tools/trace/part_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "native/trace/trace_file.hpp"
#include "tools/trace/trace_part.hpp"

namespace ringlet::trace {

void PartFiles::add(std::uint32_t rank, std::uint32_t restarts, std::string_view bytes) {
  // An empty piece ends a process' trace. Jobs may start more processes than there may be open files.
  if (bytes.empty()) {
    if (const auto ended = parts_.find({rank, restarts}); ended != parts_.end()) ended->second.file.close();
    return;
  }
  ranks_.insert(rank);
  const auto [found, is_new] = parts_.try_emplace({rank, restarts});
  Part& part = found->second;
  if (is_new) {
    const std::string name = restarts == 0 ? fmt::format("{}", rank) : fmt::format("{}.start{}", rank, restarts);
    part.path = native::name_of_trace_part(file_, name);
    part.file.open(part.path, std::ios::binary | std::ios::trunc);
  }
  if (!part.error.empty()) return;
  if (!part.file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush())
    part.error = fmt::format("'{}' cannot be written: {}", part.path, std::strerror(errno));
}

Merged PartFiles::merge() {
  std::vector<std::string> paths;
  for (auto& [key, part] : parts_) {
    if (!part.error.empty()) throw std::runtime_error(part.error);
    part.file.close();
    paths.push_back(part.path);
  }
  const Merged merged = merge_traces(paths, file_);
  for (const std::string& path : paths) std::filesystem::remove(path);
  parts_.clear();
  return merged;
}

std::string find_obstacle(const std::string& file) {
  std::error_code failure;
  if (std::filesystem::is_directory(file, failure)) return "it is a directory";
  const std::string trial = name_while_unfinished(file);
  if (!std::ofstream(trial)) return std::strerror(errno);
  std::filesystem::remove(trial, failure);
  return {};
}

}  // namespace ringlet::trace
