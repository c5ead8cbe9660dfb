#pragma once

#include <ringlet/group.hpp>
#include <string>
#include <string_view>

#include "tools/command/bench_rank.hpp"

namespace ringlet::command {

/// What one size takes: over batches of calls, one after the other, in the slowest rank's time; p99 over single calls of this rank.
struct Row {
  std::size_t bytes = 0;
  double median_us = 0, min_us = 0, p99_us = 0;
  bool checked = false;  // every rank's result was right
};

/// Collective; throws what the operation throws. All ranks get the same median and minimum.
Row measure(Group& group, const BenchPlan& plan, std::size_t bytes);

/// By which the bytes over the time are multiplied for the bandwidth of each rank's connection.
double bus_factor(CollectiveKind operation, int ranks);

/// "4 B", "64 MiB".
std::string size_text(std::size_t bytes);

/// What carries the bytes, over all ranks: "tcp", "memory", "mixed" or "none". Collective.
std::string_view links_of(Group& group);

}  // namespace ringlet::command
