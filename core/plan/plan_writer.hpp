#pragma once

#include "core/plan/call.hpp"
#include "core/plan/plan.hpp"
#include "core/plan/topology.hpp"

namespace ringlet {

/// Writes one rank's plan step by step. It offers the regions of a call's buffers and the steps that every algorithm consists of.
class PlanWriter {
 public:
  /// `in_place` means that input and output are the same memory.
  PlanWriter(const Call& call, int rank, int size, const Topology& topology, bool in_place, Plan& plan)
      : call_(call), rank_(rank), size_(size), topology_(topology), in_place_(in_place), plan_(plan) {}

  const Call& call() const { return call_; }
  bool in_place() const { return in_place_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  const Topology& topology() const { return topology_; }
  bool is_root() const { return rank_ == call_.root; }
  /// The rank `offset` places further along the ring.
  int at(int offset) const { return topology_.along_ring(rank_, offset, size_); }

  Region whole(Buffer buffer) const { return {buffer, 0, call_.bytes()}; }
  /// The part of `owner` in a buffer that holds all parts. For all_to_all, the part that goes to it (input) or comes from it (output).
  Region part(Buffer buffer, int owner) const;
  /// Piece number `index` of `count` of a region of whole elements.
  Region piece(const Region& of, int count, int index) const;
  /// This rank's part in a `buffer` that holds nothing else.
  Region own_part(Buffer buffer) const { return {buffer, 0, part(buffer, rank_).bytes}; }

  /// Frames carry no more than this.
  void limit_segments(std::size_t bytes) { plan_.segment_bytes = bytes; }

  /// Opens the next peer; the sends and receives that follow are with this peer.
  void with(int peer);
  /// Like with(), but the peer is not told of the call before the first send may leave.
  void with_late_call(int peer);
  /// Opens every other rank in order; `steps(peer, slot)` writes the steps with it. The slots of the peers count from 0.
  template <class Steps>
  void with_each_peer(Steps steps) {
    for (int peer = 0, slot = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      with(peer);
      steps(peer, slot++);
    }
  }
  /// Opens both neighbours: `sends` writes the sends to the right one, `receives` the receives from the left one. With two ranks both are
  /// one peer.
  template <class Sends, class Receives>
  void with_neighbours(Sends sends, Receives receives) {
    with(at(1));
    sends();
    if (size_ > 2) with(at(-1));
    receives();
  }

  void send(Region from, ProgressIndex after = kAtOnce);
  void receive(Region into) { add_receive({into, {}, Verb::copy, false}); }
  void receive_to_reduce(Region into, Region operand, bool finish) { add_receive({into, operand, Verb::reduce, finish}); }
  /// Receives one of the contributions that combine_in_rank_order() adds.
  void receive_contribution(int slot, std::size_t bytes) { receive({Buffer::scratch, static_cast<std::size_t>(slot) * bytes, bytes}); }
  void copy(Region from, Region to);
  /// The number of the next receive.
  ProgressIndex next_receive() const { return static_cast<ProgressIndex>(plan_.receives.size()); }
  /// The number of the first receive from the peer that was opened as number `slot`.
  ProgressIndex first_receive(int slot) const {
    return static_cast<ProgressIndex>(plan_.peers[static_cast<std::size_t>(slot)].first_receive);
  }

  /// Opens the next combine; the operands that follow are its operands. `after_sends` means that `into` is also sent from.
  void combine(Region into, bool after_sends);
  /// Opens a combine whose result is a partial sum.
  void combine_partially(Region into);
  void add_operand(Region from, ProgressIndex after);
  /// Combines the ranks' contributions in rank order: this rank's own and, in scratch memory, those of the others, each brought by receive
  /// number slot * `stride`. The slots are in rank order or, for a doubling, in the order of arrival (gathering.hpp).
  void combine_in_rank_order(Region own, Region into, int stride, bool after_sends);
  Region take_scratch(std::size_t bytes);

 private:
  void add_receive(const Receive& step);
  /// Calls `visit(rank)` for all ranks in the order in which a doubling brings their contributions, this rank somewhere among them.
  template <class Visit>
  void for_arrivals(Visit visit) const;

  const Call& call_;
  const int rank_;
  const int size_;
  const Topology& topology_;
  const bool in_place_;
  Plan& plan_;
};

}  // namespace ringlet
