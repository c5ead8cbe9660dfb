#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/trace/unfinished_file.hpp"

namespace ringlet::trace {

struct Merged {
  std::uint64_t events = 0;
  std::uint64_t dropped = 0;     // that ranks had no room for
  std::uint64_t unreadable = 0;  // lines that were cut short
  // Parts, by their places in the list of parts.
  std::vector<std::size_t> unaligned{};  // whose clock could not be compared, and whose times are as they were
  std::vector<std::size_t> endless{};    // that end before their process said so: it was killed, or could not write on
};

/// Is told in between how many bytes of the parts have been read, and of how many; returns whether to go on. Unset: nobody asks.
using MergeWatch = std::function<bool(std::uint64_t read_bytes, std::uint64_t all_bytes)>;

/// A watch has ended the merging.
class MergeStopped final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Merges the files of ranks into one, with all times on the first part's clock. A process that has another's number gets one of its own,
/// from 1,000,000 on. Takes little memory, however long the files are. Throws `std::runtime_error` where a file cannot be read or written,
/// or is no part of a trace, `MergeStopped` where the watch says so; then `out` is not finished.
Merged merge_traces(const std::vector<std::string>& parts, UnfinishedFile& out, const MergeWatch& watch = {});
/// The same into the file of this name, which is as it was where it throws.
Merged merge_traces(const std::vector<std::string>& parts, const std::string& out, const MergeWatch& watch = {});

}  // namespace ringlet::trace
