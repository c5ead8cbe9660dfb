#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/plan/call.hpp"
#include "core/plan/topology.hpp"

namespace ringlet {

/// What moving bytes costs a machine, in nanoseconds. All links of its ranks share its port, whose two directions are independent.
struct PortCost {
  double latency = 50'000;   // from a frame's first byte leaving until it arrives
  double per_byte_out = 8;   // of payload
  double per_byte_in = 8;    // of payload, with what is done to it
  double per_frame = 5'000;  // at either end: calls of the system, headers, the loop
};

/// How bytes are divided on their way.
struct Granules {
  std::size_t segment_bytes = 256 << 10;  // of a frame
  std::size_t piece_bytes = 16 << 10;     // what one connection sends before the port turns to the next; larger ones make it quicker
};

/// The pieces for a call among so many ranks: small beside a part, and few enough that a thousand ranks take seconds.
Granules granules_of(const Call& call, int size);

/// The cost of one collective for all its ranks together.
struct PlanCost {
  double nanoseconds = 0;            // until the last rank is done
  std::uint64_t frames = 0;          // of all ranks
  std::uint64_t most_bytes_out = 0;  // to other machines, of the machine that sends most
  std::uint64_t most_scratch = 0;    // bytes of memory beside the caller's, of the rank that needs most
};

/// Computes the cost of a call among `ports.size()` (>= 2) ranks that begin together, from the plans that the engine would run: frames
/// leave a port piece by piece in turns of its peers, pass the network without meeting each other, and enter the other port in the order
/// in which they come. Nothing but the plans is kept of each rank, so it serves for a thousand of them, where a simulation of their
/// engines and links does not. `call` has the algorithm. If `topology` has shared machines, ranks of one share the port of its lowest rank,
/// and each has one more for ranks of the same machine, `within`. It leaves out the calls' own frames and windows for ranks that are late.
PlanCost cost_of(const Call& call, const Topology& topology, const std::vector<PortCost>& ports, const Granules& granules = {},
                 const PortCost& within = {});

}  // namespace ringlet
