#pragma once

#include <span>
#include <utility>
#include <vector>

#include "tools/prediction/plan_cost.hpp"

namespace ringlet::prediction {

/// What two ranks have measured of the link between them, in nanoseconds: by small and by large collectives of the two alone.
struct MeasuredLink {
  int one = 0, other = 0;    // ranks; `one` is the lower
  double exchange = 0;       // of a few bytes that both send each other at once
  double byte_to_other = 0;  // of a long message, while nothing comes back
  double byte_to_one = 0;
  double byte_both_ways = 0;  // in each direction, while as much comes back; with the addition of what comes
};

/// The port of a rank whose exchanges of a few bytes take so long, of which calls of the system and the loop are a part.
PortCost port_cost(double exchange, double per_byte_out, double per_byte_in);

/// Puts the pairs of all ranks into rounds in which each rank has one partner at most, so that the pairs of a round may measure at the same
/// time. With an odd number of ranks one rests in each round.
std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int size);

/// The network of a group's ranks. Ranks of one machine share its port.
struct RankNetwork {
  std::vector<PortCost> ports;  // by rank; those of one machine have the same
  /// By rank, a number that is the same for ranks of one machine. If it is empty, each has a port of its own.
  std::vector<int> machines{};
  PortCost within{};  // between ranks of one machine

  int size() const { return static_cast<int>(ports.size()); }
  bool same_machine(int one, int other) const {
    return one == other || (!machines.empty() && machines[static_cast<std::size_t>(one)] == machines[static_cast<std::size_t>(other)]);
  }
  /// Returns the network without a rank and the others of its machine. If one machine is left, its ranks have ports of their own.
  RankNetwork without_machine_of(int rank) const;
};

/// The lowest rank of each machine.
std::vector<int> leads_of(int size, const std::vector<int>& machines);

/// The two lowest ranks of each machine that has several.
std::vector<std::pair<int, int>> pairs_within(int size, const std::vector<int>& machines);

/// Computes the network of `size` ranks from the links between the lowest ranks of all machines, and from links between two ranks of one
/// machine, the slowest of which counts for all.
RankNetwork network_of(int size, const std::vector<int>& machines, std::span<const MeasuredLink> links,
                       std::span<const MeasuredLink> within_machines);

/// Computes the ports of all ranks, of which each pair has one entry in `links`. A link is no faster than the slower one of its two ports,
/// so a port is as fast as the fastest of its links. Where both directions together are slower than each of them alone, as on Wi-Fi, the
/// port gets the speed that both have together, since collectives send and receive at the same time.
std::vector<PortCost> ports_of(int size, std::span<const MeasuredLink> links);

/// Finds the links that are slower than both of their ports by more than this factor. The model of ports knows nothing of that.
std::vector<MeasuredLink> slower_than_ports(std::span<const MeasuredLink> links, const std::vector<PortCost>& ports, double factor);

}  // namespace ringlet::prediction
