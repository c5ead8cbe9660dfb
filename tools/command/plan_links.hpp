#pragma once

#include <ringlet/group.hpp>
#include <vector>

#include "tools/prediction/measured_links.hpp"

namespace ringlet::command {

/// What the ranks of a group have measured of their links.
struct LinkMeasurements {
  std::vector<int> machines;                      // by rank, as in RankNetwork
  std::vector<prediction::MeasuredLink> between;  // the lowest ranks of all machines
  std::vector<prediction::MeasuredLink> within;   // the two lowest ranks of each machine that has several
};

/// Measures the links between machines, pair by pair, and within each, and says on rank 0's stderr how far it is. Ranks that all share one
/// machine count as if they had one each. Collective; returns the same on all ranks, and throws what collectives throw. It takes about
/// `seconds`, or as long as 11 messages of 10 ms for each pair, or as 64 KiB take.
LinkMeasurements measure_links(Group& group, double seconds);

}  // namespace ringlet::command
