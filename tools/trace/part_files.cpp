#include "tools/trace/part_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "native/trace/trace_file.hpp"

namespace ringlet::trace {

namespace {

std::string cannot_be_written(const std::string& path, const std::string& why) {
  return fmt::format("'{}' cannot be written: {}", path, why);
}

}  // namespace

void PartFiles::add(const RankProcess& process, std::string_view bytes) {
  if (bytes.empty()) {
    whole_.insert(process);
    // Jobs may start more processes than there may be open files.
    if (const auto ended = parts_.find(process); ended != parts_.end()) close(ended->second);
    return;
  }
  const auto [found, is_new] = parts_.try_emplace(process);
  Part& part = found->second;
  if (is_new) open(process, part);
  if (!part.error.empty()) return;
  if (part.file.write(bytes))
    part.bytes += bytes.size();
  else
    part.error = cannot_be_written(part.path, part.file.error());
}

void PartFiles::open(const RankProcess& process, Part& part) const {
  const std::string name =
      process.restarts == 0 ? fmt::format("{}", process.rank) : fmt::format("{}.start{}", process.rank, process.restarts);
  part.path = native::name_of_trace_part(file_, name);
  part.file = native::OutputFile(native::open_alone(part.path));
  if (part.file.is_open()) return;
  part.error = errno == EWOULDBLOCK ? fmt::format("'{}' is being written by {}", part.path, native::writer_of(part.path))
                                    : cannot_be_written(part.path, std::strerror(errno));
}

void PartFiles::close(Part& part) {
  if (!part.file.close() && part.error.empty()) part.error = cannot_be_written(part.path, part.file.error());
}

std::uint64_t PartFiles::bytes_of(const RankProcess& process) const {
  const auto part = parts_.find(process);
  return part == parts_.end() ? 0 : part->second.bytes;
}

std::string PartFiles::error_of(const RankProcess& process) const {
  const auto part = parts_.find(process);
  return part == parts_.end() ? "" : part->second.error;
}

std::vector<RankProcess> PartFiles::processes() const {
  std::vector<RankProcess> all;
  for (const auto& [process, part] : parts_)
    if (part.bytes > 0) all.push_back(process);
  return all;
}

void PartFiles::close() {
  for (auto& [process, part] : parts_) close(part);
}

Merged PartFiles::merge(const MergeWatch& watch) {
  close();
  std::vector<std::string> paths;
  for (const RankProcess& process : processes()) paths.push_back(parts_.at(process).path);
  if (paths.empty() && !parts_.empty()) throw std::runtime_error(parts_.begin()->second.error);
  Merged merged = merge_traces(paths, merged_, watch);
  // A part that cannot be removed is a copy of what is in the whole.
  std::error_code failure;
  for (const std::string& path : paths) std::filesystem::remove(path, failure);
  return merged;
}

}  // namespace ringlet::trace
