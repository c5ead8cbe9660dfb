#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ringlet {

/// How much the owners of parts take upon themselves (Algorithm::leaves). Part of a group's configuration: equal on all ranks.
struct LeafLimits {
  std::size_t owned_bytes = 1 << 10;    // no owner has less; of a small buffer there are fewer owners
  std::size_t window_bytes = 32 << 20;  // an owner's memory for contributions; each rank may use an equal part of it
  std::size_t most_window_bytes = 4 << 20, least_window_bytes = 1 << 20;  // of one rank
};

/// Which ranks of a group are guests: they cannot listen, and what two guests send each other passes through a native rank. A value;
/// without guests it holds nothing and fits groups of every size.
class Topology {
 public:
  Topology() = default;
  /// By rank, whether it is a guest.
  explicit Topology(const std::vector<bool>& is_guest, const LeafLimits& limits = {});
  /// The last `guests` ranks are guests.
  static Topology of_world(int size, int guests, const LeafLimits& limits = {});

  bool has_guests() const { return guests_ > 0; }
  bool is_guest(int rank) const { return has_guests() && is_guest_[static_cast<std::size_t>(rank)]; }
  int guests() const { return guests_; }
  int natives(int size) const { return size - guests_; }
  /// Which native rank, counted from 0, `rank` is; -1 for a guest.
  int index_among_natives(int rank) const { return has_guests() ? native_index_[static_cast<std::size_t>(rank)] : rank; }

  /// The rank `offset` places further along the ring of `size` ranks. Without guests it is in rank order; with them each guest stands
  /// behind a native as long as there are natives enough, so that no edge is between two guests.
  int along_ring(int rank, int offset, int size) const;
  /// Edges between two guests of the ring.
  int relayed_edges() const;
  const LeafLimits& leaf_limits() const { return leaf_limits_; }

 private:
  LeafLimits leaf_limits_{};
  std::vector<bool> is_guest_;
  int guests_ = 0;
  std::vector<int> native_index_;
  std::vector<int> ring_;   // by place
  std::vector<int> place_;  // by rank
};

}  // namespace ringlet
