#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/plan/call.hpp"
#include "core/plan/topology.hpp"

namespace ringlet {

/// What it costs to send over a link of one sort.
struct LinkCost {
  double latency_ns = 0;   // from a small message's start until the other rank has it
  double ns_per_byte = 0;  // of a long message

  friend bool operator==(const LinkCost&, const LinkCost&) = default;
};

/// How a group with guests moves what has more than one way.
enum class PlacementPolicy : std::uint8_t {
  automatic = 0,  // the way that is estimated to be the faster one
  ring = 1,       // as among natives
  leaves = 2,     // by leaves, where the kind has it
};
inline constexpr std::size_t kPlacementPolicyCount = 3;
std::string_view name_of(PlacementPolicy policy) noexcept;
/// "auto", "ring" or "leaves".
std::optional<PlacementPolicy> find_placement_policy(std::string_view name) noexcept;

/// What the choice between the ways depends on. Part of a world's configuration: equal on all ranks, rank 0 announces it.
struct Placement {
  PlacementPolicy policy = PlacementPolicy::automatic;
  LinkCost native{25'000, 0.4};  // between two natives
  LinkCost guest{100'000, 3.0};  // between a native and a guest

  friend bool operator==(const Placement&, const Placement&) = default;
};

/// The algorithm of a call, whose whole buffer has `bytes`, in a group: a pure function. Without guests the one of native ranks.
Algorithm choose_algorithm(const Call& call, std::size_t bytes, int size, const Topology& topology, const AlgorithmLimits& limits,
                           const Placement& placement);

/// How long such a call takes by that algorithm, about: the links' latencies, one after the other, and what the busiest rank sends or
/// receives, relayed bytes among it. Not for gather, scatter and all_to_all, which have one way only, nor for doubling.
double estimated_ns(const Call& call, Algorithm algorithm, std::size_t bytes, int size, const Topology& topology,
                    const Placement& placement);

/// A line for people: "2 native ranks, 2 browsers: large all-reduces by leaves (estimated 38 ms for 64 MiB; ring 61 ms)".
std::string describe_placement(int size, const Topology& topology, const AlgorithmLimits& limits, const Placement& placement);

}  // namespace ringlet
