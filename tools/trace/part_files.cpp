#include "tools/trace/part_files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "native/trace/trace_file.hpp"
#include "tools/trace/trace_part.hpp"

namespace ringlet::trace {

void PartFiles::add(std::uint32_t rank, std::uint32_t restarts, std::string_view bytes) {
  // Jobs may start more processes than there may be open files.
  if (bytes.empty()) {
    whole_.insert({rank, restarts});
    if (const auto ended = parts_.find({rank, restarts}); ended != parts_.end()) ended->second.file.reset();
    return;
  }
  const auto [found, is_new] = parts_.try_emplace({rank, restarts});
  Part& part = found->second;
  if (is_new) {
    const std::string name = restarts == 0 ? fmt::format("{}", rank) : fmt::format("{}.start{}", rank, restarts);
    part.path = native::name_of_trace_part(file_, name);
    open(part);
  }
  part.bytes += bytes.size();
  if (!part.error.empty()) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), part.file.get()) != bytes.size() || std::fflush(part.file.get()) != 0)
    part.error = fmt::format("'{}' cannot be written: {}", part.path, std::strerror(errno));
}

void PartFiles::open(Part& part) {
  const int descriptor = native::open_alone(part.path);
  if (descriptor < 0 && errno == EWOULDBLOCK)
    part.error = fmt::format("'{}' is being written by {}", part.path, native::writer_of(part.path));
  else if (descriptor < 0 || !(part.file = decltype(part.file)(::fdopen(descriptor, "wb"))))
    part.error = fmt::format("'{}' cannot be written: {}", part.path, std::strerror(errno));
}

bool PartFiles::has(std::uint32_t rank) const {
  const auto first = parts_.lower_bound({rank, 0});
  return first != parts_.end() && first->first.first == rank;
}

std::uint64_t PartFiles::bytes_of(std::uint32_t rank, std::uint32_t restarts) const {
  const auto part = parts_.find({rank, restarts});
  return part == parts_.end() ? 0 : part->second.bytes;
}

Merged PartFiles::merge(const MergeWatch& watch) {
  std::vector<std::string> paths;
  for (auto& [key, part] : parts_) {
    if (!part.error.empty()) throw std::runtime_error(part.error);
    part.file.reset();
    paths.push_back(part.path);
  }
  const Merged merged = merge_traces(paths, file_, watch);
  for (const std::string& path : paths) std::filesystem::remove(path);
  parts_.clear();
  return merged;
}

std::string find_obstacle(const std::string& file) {
  std::error_code failure;
  if (std::filesystem::is_directory(file, failure)) return "it is a directory";
  const std::string trial = name_while_unfinished(file);
  const int descriptor = native::open_alone(trial);
  if (descriptor < 0) return errno == EWOULDBLOCK ? "another process is putting it together" : std::strerror(errno);
  std::filesystem::remove(trial, failure);
  ::close(descriptor);
  return {};
}

}  // namespace ringlet::trace
