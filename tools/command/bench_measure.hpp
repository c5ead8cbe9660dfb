#pragma once

#include <ringlet/group.hpp>
#include <string>
#include <string_view>

#include "tools/command/bench_rank.hpp"

namespace ringlet::command {

/// The result for one size, in microseconds. The median and the minimum are over batches of consecutive calls, measured by the slowest
/// rank. The p99 is over single calls of this rank.
struct Row {
  std::size_t bytes = 0;
  double median_us = 0, min_us = 0, p99_us = 0;
  bool checked = false;  // every rank's result was right
};

/// Throws `InvalidArgument` where the plan asks for another number of ranks.
void check_size(const BenchPlan& plan, const Group& group);

/// Measures one size. Collective; throws what the operation throws. All ranks get the same median and minimum.
Row measure(Group& group, const BenchPlan& plan, std::size_t bytes);

/// Returns the factor by which bytes per time are multiplied to get the bandwidth of each rank's connection.
double bus_factor(CollectiveKind operation, int ranks);

/// Returns a text such as "4 B" or "64 MiB".
std::string size_text(std::size_t bytes);

/// How bytes move between all ranks.
struct LinkNames {
  std::string_view medium;  // "tcp", "memory", "mixed" or "none"
  std::string_view cipher;  // "aes256gcm", "chacha20", "mixed" or "none"

  /// Returns a text such as "tcp" or "tcp, aes256gcm".
  std::string text() const;
};
/// Collective.
LinkNames links_of(Group& group);

}  // namespace ringlet::command
