#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace ringlet::trace {

struct Merged {
  std::size_t parts = 0;
  std::uint64_t events = 0;
  std::uint64_t dropped = 0;           // that ranks had no room for
  std::uint64_t unreadable = 0;        // lines that were cut short
  std::vector<std::string> unaligned;  // parts whose clock could not be compared, and whose times are as they were
};

/// Is told in between how many bytes of the parts have been read, and of how many; returns whether to go on. Unset: nobody asks.
using MergeWatch = std::function<bool(std::uint64_t read_bytes, std::uint64_t all_bytes)>;

/// A watch has ended the merging.
class MergeStopped final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What `out` is called until it is whole.
std::string name_while_unfinished(const std::string& out);

/// Merges the files of ranks into one, with all times on the first part's clock. A process that has another's number gets one of its own,
/// from 1,000,000 on. Takes little memory, however long the files are. Throws `std::runtime_error` where a file cannot be read or written,
/// `MergeStopped` where the watch says so; then `out` is as it was.
Merged merge_traces(const std::vector<std::string>& parts, const std::string& out, const MergeWatch& watch = {});

}  // namespace ringlet::trace
