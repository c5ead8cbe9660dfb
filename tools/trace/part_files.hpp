#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/trace/merge.hpp"

namespace ringlet::trace {

/// The parts of a trace while they come from the machines of a job: files beside the one that they will be merged into, "trace.3.json" of
/// rank 3, and "trace.3.start1.json" of the process that was started in its place after one other. What an earlier run left there is
/// replaced, but not what another process is writing.
class PartFiles {
 public:
  explicit PartFiles(std::string file) : file_(std::move(file)) {}

  /// Appends to the part of the rank's process that was started after `restarts` others; no bytes: that was all. Where it fails, merge()
  /// says so.
  void add(std::uint32_t rank, std::uint32_t restarts, std::string_view bytes);
  /// Whether anything has come of any process of the rank.
  bool has(std::uint32_t rank) const;
  bool empty() const { return parts_.empty(); }
  /// Whether all of this process has come, which may be nothing.
  bool is_whole(std::uint32_t rank, std::uint32_t restarts) const { return whole_.contains({rank, restarts}); }
  /// How much of this process has come.
  std::uint64_t bytes_of(std::uint32_t rank, std::uint32_t restarts) const;
  /// Makes the one file, and removes the parts. Throws as merge_traces(), or where a part could not be written; then all parts that could
  /// stay.
  Merged merge(const MergeWatch& watch = {});

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct Part {
    std::string path;
    std::unique_ptr<std::FILE, Closer> file{};
    std::uint64_t bytes = 0;
    std::string error{};
  };
  using Key = std::pair<std::uint32_t, std::uint32_t>;  // rank and restarts

  void open(Part& part);

  const std::string file_;
  std::map<Key, Part> parts_;
  std::set<Key> whole_;
};

/// Why the file could not be written, with what stands beside it until it is whole; nothing where it can.
std::string find_obstacle(const std::string& file);

}  // namespace ringlet::trace
