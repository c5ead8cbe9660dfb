#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ringlet {

/// Limits for the ranks that own parts (Algorithm::hub). They are part of a group's configuration and equal on all ranks.
struct LeafLimits {
  std::size_t owned_bytes = 1 << 10;    // least part of an owner; a small buffer has fewer owners
  std::size_t window_bytes = 32 << 20;  // memory of an owner for contributions, shared equally among the ranks
  std::size_t most_window_bytes = 4 << 20, least_window_bytes = 1 << 20;  // bounds of one rank's share of it
};

/// Says which ranks of a group are guests, which cannot listen; traffic between two guests passes through a native rank. A value; without
/// guests it is empty and fits groups of every size.
class Topology {
 public:
  Topology() = default;
  /// `is_guest` says of each rank whether it is a guest.
  explicit Topology(const std::vector<bool>& is_guest, const LeafLimits& limits = {});
  /// The topology of a world, whose last `guests` ranks are guests.
  static Topology of_world(int size, int guests, const LeafLimits& limits = {});

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
  const LeafLimits& leaf_limits() const { return leaf_limits_; }

 private:
  LeafLimits leaf_limits_{};
  std::vector<bool> is_guest_;
  int guests_ = 0;
  std::vector<int> native_index_;
  std::vector<int> ring_;   // the rank at each place of the ring
  std::vector<int> place_;  // the place of each rank
};

}  // namespace ringlet
