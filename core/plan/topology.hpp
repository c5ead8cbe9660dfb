#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ringlet {

/// Limits for the ranks that own parts (Algorithm::hub). They are part of a group's configuration and equal on all ranks.
struct LeafLimits {
  std::size_t owned_bytes = 1 << 10;    // least part of an owner; a small buffer has fewer owners
  std::size_t window_bytes = 32 << 20;  // memory of an owner for contributions, shared equally among the ranks
  std::size_t most_window_bytes = 4 << 20, least_window_bytes = 1 << 20;  // bounds of one rank's share of it
};

/// Whether this build has the plans by machines. A browser's rank is a guest in all its groups, which never go by machines, and its package
/// is small.
#if defined(__EMSCRIPTEN__)
inline constexpr bool kHasMachinePlans = false;
#else
inline constexpr bool kHasMachinePlans = true;
#endif

/// Limits for ranks that share machines (Algorithm::machines), in bytes of the whole buffer where nothing else is said. They are part of a
/// group's configuration and equal on all ranks.
struct MachineLimits {
  std::size_t least_bytes = 2 << 10;     // smaller buffers go as if each rank had a machine of its own, with one hop less
  std::size_t slice_bytes = 64 << 10;    // least slice of a lead rank; a small buffer has fewer of them
  std::size_t chain_bytes = 1 << 20;     // above it ranks of a machine add along a chain, without memory for contributions
  std::size_t exchange_bytes = 1 << 20;  // up to it, and up to the next limit, machines send each other whole slices: one hop
  std::size_t excess_bytes = 16 << 10;   // most that a machine sends more for that
  std::size_t spared_bytes = 2 << 10;    // least that one hop more of an all-gather, a reduce-scatter or a reduce has to spare a machine
};

/// Limits for rings (Algorithm::ring). They are part of a group's configuration and equal on all ranks.
struct RingLimits {
  std::size_t piece_bytes = 4 << 20;  // least piece of a part of an all-reduce, where parts are longer; not 0
};

/// The speed of a rank's links is given relative to the fastest native rank's, which has this number.
inline constexpr std::uint32_t kFullSpeed = 1024;

/// Returns the weights of the parts that ranks own in an all-reduce among `size` ranks, given the speeds of those that may own parts. An
/// owner of the share f of S bytes sends and receives S * (1 + (size - 2) * f): its contribution to other parts, and its own part once to
/// each other rank. The weights make the largest of these loads, divided by the rank's speed, as small as possible. A rank that would be
/// slower than the others even without a part, as one of half their speed always is, gets 0. Weights are at most kFullSpeed.
std::vector<std::uint32_t> weights_of_owners(std::span<const std::uint32_t> speeds, int size);

/// Says which ranks of a group are guests, which cannot listen, and which ranks share a machine. Traffic between two guests passes through
/// a native rank. It also says how fast the links of native ranks are, if they differ. A value; without guests, machines and differences it
/// is empty and fits groups of every size.
class Topology {
 public:
  Topology() = default;
  /// `is_guest` says of each rank whether it is a guest.
  explicit Topology(const std::vector<bool>& is_guest, const LeafLimits& limits = {});
  /// The topology of a world, whose last `guests` ranks are guests.
  static Topology of_world(int size, int guests, const LeafLimits& limits = {});
  /// `machine_of` has a number for each rank, which is the same for the ranks of one machine. If it is empty, each rank has a machine of
  /// its own.
  void set_machines(const std::vector<int>& machine_of, const MachineLimits& limits);
  void set_ring_limits(const RingLimits& limits) { ring_limits_ = limits; }

  /// Sets the speed of each rank (kFullSpeed); a guest's is not used. If all natives are equally fast, or there are only two ranks, parts
  /// stay equal.
  void set_speeds(std::span<const std::uint32_t> speeds);
  /// Whether the parts of native ranks follow their speeds.
  bool has_speeds() const { return !speeds_.empty(); }
  std::uint32_t speed(int rank) const { return has_speeds() ? speeds_[static_cast<std::size_t>(rank)] : kFullSpeed; }
  /// The number of ranks that may own parts. Without differences in speed, these are the native ranks.
  int owners(int size) const { return has_speeds() ? static_cast<int>(owner_weights_.size()) : natives(size); }
  /// The index of `rank` among those that may own parts, from 0; -1 for another.
  int index_among_owners(int rank) const { return has_speeds() ? owner_index_[static_cast<std::size_t>(rank)] : index_among_natives(rank); }
  /// By index among the owners; empty if parts are equal.
  std::span<const std::uint32_t> owner_weights() const { return owner_weights_; }

  bool has_guests() const { return guests_ > 0; }
  bool is_guest(int rank) const { return has_guests() && is_guest_[static_cast<std::size_t>(rank)]; }
  int guests() const { return guests_; }
  int natives(int size) const { return size - guests_; }
  /// The index of `rank` among the native ranks, from 0; -1 for a guest.
  int index_among_natives(int rank) const { return has_guests() ? native_index_[static_cast<std::size_t>(rank)] : rank; }

  /// The rank `offset` places further along the ring of `size` ranks. Without guests the ring is in rank order. With guests each one
  /// follows a native rank as long as there are enough of them, so that no edge is between two guests.
  int along_ring(int rank, int offset, int size) const;
  /// The number of the ring's edges between two guests.
  int relayed_edges() const;
  const RingLimits& ring_limits() const { return ring_limits_; }
  const LeafLimits& leaf_limits() const { return leaf_limits_; }

  /// Whether there are several machines, one of which at least has several ranks.
  bool has_shared_machines() const { return machines_.size() > 1; }
  /// The number of machines, which are in the order of their lowest ranks. The next functions need has_shared_machines().
  int machines() const { return static_cast<int>(machines_.size()); }
  int machine_of(int rank) const { return machine_of_[static_cast<std::size_t>(rank)]; }
  /// The ranks of a machine, in order.
  const std::vector<int>& ranks_on(int machine) const { return machines_[static_cast<std::size_t>(machine)]; }
  const MachineLimits& machine_limits() const { return machine_limits_; }

 private:
  LeafLimits leaf_limits_{};
  MachineLimits machine_limits_{};
  RingLimits ring_limits_{};
  std::vector<std::vector<int>> machines_;  // the ranks of each, if one has several
  std::vector<int> machine_of_;             // by rank
  std::vector<bool> is_guest_;
  int guests_ = 0;
  std::vector<int> native_index_;
  std::vector<int> ring_;                     // the rank at each place of the ring
  std::vector<int> place_;                    // the place of each rank
  std::vector<std::uint32_t> speeds_;         // by rank; empty if parts are equal
  std::vector<int> owner_index_;              // by rank
  std::vector<std::uint32_t> owner_weights_;  // by index among the owners
};

}  // namespace ringlet
