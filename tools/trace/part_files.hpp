#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/trace/merge.hpp"

namespace ringlet::trace {

/// The parts of a trace while they come from the machines of a job: files beside the one that they will be merged into, "trace.3.json" of
/// rank 3, and "trace.3.start1.json" of the process that was started in its place after one other. What an earlier run left there is
/// replaced.
class PartFiles {
 public:
  explicit PartFiles(std::string file) : file_(std::move(file)) {}

  /// Appends to the part of the rank's process that was started after `restarts` others. Where that fails, merge() says so.
  void add(std::uint32_t rank, std::uint32_t restarts, std::string_view bytes);
  bool has(std::uint32_t rank) const { return ranks_.contains(rank); }
  bool empty() const { return parts_.empty(); }
  /// Makes the one file, and removes the parts. Throws `std::runtime_error` where that fails; then all parts that could be written stay.
  Merged merge();

 private:
  struct Part {
    std::string path;
    std::ofstream file{};
    std::string error{};
  };

  const std::string file_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Part> parts_;  // by rank and restarts
  std::set<std::uint32_t> ranks_;
};

/// Why the file could not be written, with what stands beside it until it is whole; nothing where it can.
std::string find_obstacle(const std::string& file);

}  // namespace ringlet::trace
