#pragma once

#include <cstdint>
#include <optional>
#include <ringlet/parts_policy.hpp>
#include <string>
#include <string_view>

#include "core/plan/call.hpp"
#include "core/plan/topology.hpp"

namespace ringlet {

/// The cost of sending over one sort of link.
struct LinkCost {
  double latency_ns = 0;   // from a small message's start until the other rank has it
  double ns_per_byte = 0;  // for a long message

  friend bool operator==(const LinkCost&, const LinkCost&) = default;
};

/// How a group with guests or shared machines chooses between several ways to move the same bytes.
enum class PlacementPolicy : std::uint8_t {
  automatic = 0,  // the way with the shorter estimated time; without guests by machines
  ring = 1,       // as among native ranks that have a machine each
  hub = 2,        // by the hub, if there are guests and the kind has that algorithm; else as `ring`
};
inline constexpr std::size_t kPlacementPolicyCount = 3;
std::string_view name_of(PlacementPolicy policy) noexcept;
/// Finds the policy by its name: "auto", "ring" or "hub".
std::optional<PlacementPolicy> find_placement_policy(std::string_view name) noexcept;

inline constexpr std::size_t kReduceOrderCount = 2;
std::string_view name_of(ReduceOrder order) noexcept;
/// Finds the order by its name: "any" or "rank".
std::optional<ReduceOrder> find_reduce_order(std::string_view name) noexcept;

inline constexpr std::size_t kPartsPolicyCount = 3;
std::string_view name_of(PartsPolicy policy) noexcept;
/// Finds the policy by its name: "even", "measured" or "passive".
std::optional<PartsPolicy> find_parts_policy(std::string_view name) noexcept;

/// The inputs of the choice between algorithms. They are part of a world's configuration and equal on all ranks; rank 0 announces them.
struct Placement {
  PlacementPolicy policy = PlacementPolicy::automatic;
  LinkCost native{25'000, 0.4};  // between two natives of full speed
  LinkCost guest{100'000, 3.0};  // between a native and a guest
  ReduceOrder order = ReduceOrder::any;
  PartsPolicy parts = PartsPolicy::even;

  friend bool operator==(const Placement&, const Placement&) = default;
};

/// Chooses the algorithm of a call, whose whole buffer has `bytes`. It is a pure function. In a group without guests and shared machines it
/// is the algorithm of native ranks or, if their speeds differ, the hub for those all-reduces that it makes faster. With passive parts a
/// call whose bits depend on the order of additions keeps the order that it has by even parts.
Algorithm choose_algorithm(const Call& call, std::size_t bytes, int size, const Topology& topology, const AlgorithmLimits& limits,
                           const Placement& placement);

/// Chooses the algorithm of a call that has one, for a group whose speeds have changed since: of an all-reduce anew. A mean that was not
/// divided beforehand keeps to algorithms that do not round partial sums, which might overflow.
Algorithm choose_again(const Call& call, int size, const Topology& topology, const AlgorithmLimits& limits, const Placement& placement);

/// Estimates the time of such a call by that algorithm: the latencies of the links in a row, plus the time in which the busiest rank sends
/// or receives its bytes, relayed ones included; if speeds differ, the rank that takes longest. It does not cover gather, scatter and
/// all_to_all, which have only one algorithm, nor doubling. By machines only what crosses the network counts; by the other algorithms each
/// rank counts as alone on its machine.
double estimated_ns(const Call& call, Algorithm algorithm, std::size_t bytes, int size, const Topology& topology,
                    const Placement& placement);

/// Names the slower ranks: "rank 3 has 0.25 of the others' speed and owns no part; ...". Of many only the first are listed; empty where
/// speeds do not differ.
std::string describe_speeds(int size, const Topology& topology);

/// Describes the choice in a line for people: "2 native ranks, 2 browsers: large all-reduces by hub (estimated 38 ms for 64 MiB; ring 61
/// ms)".
std::string describe_placement(int size, const Topology& topology, const AlgorithmLimits& limits, const Placement& placement);

}  // namespace ringlet
