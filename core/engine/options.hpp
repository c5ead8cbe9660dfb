#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.hpp"
#include "core/engine/early_budget.hpp"
#include "core/engine/session.hpp"
#include "core/plan/placement.hpp"
#include "simd/kernels.hpp"

namespace ringlet {

/// The number of heartbeats that a rank with nothing else to send sends within one heartbeat timeout.
inline constexpr int kHeartbeatsPerTimeout = 4;

/// What ranks agree on while they meet, by which they then choose algorithms and parts alike.
struct AgreedPlacement {
  Placement placement{};
  AlgorithmLimits limits{};
  std::vector<int> machines{};          // WorldOptions::machines
  std::vector<std::uint32_t> speeds{};  // WorldOptions::speeds
};

struct WorldOptions {
  int rank = 0;
  int size = 1;
  /// The number of ranks that cannot be dialled (browsers). They are the last ranks, and rank 0 is never one.
  int guests = 0;
  /// How many of the ranks before the guests have joined an elastic group with this world, and have not agreed on anything with the others.
  int joined = 0;
  /// Whether the links outlive a failure of the world, for those ranks that go on without the others (core/elastic/epochs.hpp).
  bool elastic = false;
  std::uint32_t epoch = 0;  // of an elastic world
  /// Tells the traces of one job from those of another: this world and all that follow it have the same number. Rank 0's is announced when
  /// the ranks meet; 0: none.
  std::uint64_t job = 0;
  const simd::Kernels* kernels = nullptr;  // not null; outlives the world
  Duration operation_timeout = Duration::seconds(600);
  Duration heartbeat_timeout = Duration::seconds(10);
  /// A warning is given when an operation has run for this long; 0 gives none.
  Duration warn_after = Duration::seconds(10);
  Duration close_timeout = Duration::seconds(2);  // after a failure
  std::size_t segment_bytes = 256 << 10;          // payload of one data frame; the world rounds it down to whole elements of any dtype
  /// The bytes that may be sent of one operation before its receiver is known to have started it, and those of all such operations of a
  /// stream together.
  std::size_t eager_bytes = 64 << 10;
  std::size_t eager_window_bytes = 256 << 10;
  /// What may be under way like that between two ranks, in all streams and groups together. All ranks must have the same limits. Filled in
  /// by the world where it has no records.
  EarlyCost early_limits{};
  AlgorithmLimits limits{};
  Placement placement{};
  LeafLimits leaf_limits{};
  MachineLimits machine_limits{};
  RingLimits ring_limits{};
  /// By rank, a number that is the same for ranks of one machine; filled in when the ranks meet. If it is empty, each has its own.
  std::vector<int> machines{};
  std::vector<std::uint32_t> speeds{};  // by rank (kFullSpeed); filled in when the ranks meet; empty: not known to differ
  Topology topology{};                  // which ranks are guests, share machines, or are slow; filled in by the world and its groups
  std::size_t max_groups = 65'536;      // that a rank may be in at a time, including the world
  SessionOptions session{};

  /// Sets which ranks are guests, and of all ranks what `machines` and `speeds` say.
  void set_topology(const Topology& of_guests) {
    topology = of_guests;
    topology.set_machines(machines, machine_limits);
    topology.set_ring_limits(ring_limits);
    topology.set_speeds(speeds);
  }
  /// Sets what the ranks have agreed on while they met.
  void set_placement(const AgreedPlacement& agreed) {
    placement = agreed.placement;
    limits = agreed.limits;
    machines = agreed.machines;
    speeds = agreed.speeds;
    set_topology(topology);
  }

  /// Returns these options within the bounds that a world needs, with its topology.
  WorldOptions within_limits() const;

  int natives() const { return size - guests; }
  /// Whether parts may follow how fast native ranks' links are. With two natives this could not be told.
  bool follows_speeds() const { return placement.parts != PartsPolicy::even && natives() >= 3; }
  /// Whether native ranks also measure that when they meet.
  bool measures_speeds() const { return follows_speeds() && placement.parts == PartsPolicy::measured; }
  bool is_guest(int of_rank) const { return of_rank >= natives(); }
  /// Whether the rank is one of `joined`. A rank that has joined itself does not know which of the others fits.
  bool has_just_joined(int of_rank) const {
    const int members = natives() - joined;
    return rank < members && of_rank >= members && !is_guest(of_rank);
  }
  /// Whether the link between two ranks passes through relay_of(), because guests cannot dial each other.
  bool is_relayed(int one, int other) const { return is_guest(one) && is_guest(other); }
  int relay_of(int one, int other) const { return (one + other) % natives(); }
};

}  // namespace ringlet
