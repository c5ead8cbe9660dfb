#include "core/plan/make_plan.hpp"

#include "core/base/check.hpp"
#include "core/plan/chunk_layout.hpp"

namespace ringlet {

void Plan::clear() {
  peers.clear();
  sends.clear();
  receives.clear();
  combines.clear();
  operands.clear();
  copy_from = copy_to = {};
  scratch_bytes = 0;
}

namespace {

class Planner {
 public:
  Planner(const Call& call, int rank, int size, bool in_place, Plan& plan)
      : call_(call), rank_(rank), size_(size), in_place_(in_place), plan_(plan) {}

  void run() {
    plan_.clear();
    switch (call_.kind) {
      case CollectiveKind::all_reduce:
        return all_reduce();
      case CollectiveKind::reduce_scatter:
        return call_.algorithm == Algorithm::ring ? ring_reduce_scatter() : direct_reduce_scatter();
      case CollectiveKind::all_gather:
        return all_gather();
      case CollectiveKind::broadcast:
        return call_.algorithm == Algorithm::ring ? chain_broadcast() : flat_broadcast();
      case CollectiveKind::barrier:
        return exchange();
    }
  }

 private:
  void all_reduce() {
    if (call_.algorithm == Algorithm::exchange) return exchange();
    if (call_.algorithm == Algorithm::direct) return direct_all_reduce();
    ring_all_reduce();
  }

  int at(int offset) const { return ((rank_ + offset) % size_ + size_) % size_; }
  std::size_t width() const { return call_.row_elements * size_of(call_.dtype); }

  /// The owner's part of the reduced buffer, in bytes.
  Region part(Buffer buffer, int owner) const {
    if (call_.kind == CollectiveKind::reduce_scatter) return rows(buffer, rows_of(call_.rows, size_, owner));
    const ElementRange range = chunk_of(call_.elements(), size_, owner);
    const std::size_t element = size_of(call_.dtype);
    return {buffer, range.begin * element, range.count() * element};
  }
  Region rows(Buffer buffer, ElementRange range) const { return {buffer, range.begin * width(), range.count() * width()}; }
  Region whole(Buffer buffer) const { return {buffer, 0, call_.bytes()}; }

  /// Opens the next peer; its sends and receives follow.
  void with(int peer) {
    plan_.peers.push_back({peer, static_cast<std::uint32_t>(plan_.sends.size()), 0, static_cast<std::uint32_t>(plan_.receives.size()), 0});
  }
  void send(Region from, ProgressIndex after = kAtOnce) {
    plan_.sends.push_back({from, after});
    ++plan_.peers.back().send_count;
  }
  ProgressIndex receive(Receive step) {
    plan_.receives.push_back(step);
    ++plan_.peers.back().receive_count;
    return static_cast<ProgressIndex>(plan_.receives.size() - 1);
  }

  /// Adds the ranks' parts in rank order; all but this rank's own (at `own`) stand in scratch, received in order of rank.
  ProgressIndex combine_in_rank_order(Region own, Region into, ProgressIndex first_receive, bool after_sends) {
    const auto first = static_cast<std::uint32_t>(plan_.operands.size());
    int received = 0;
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) {
        plan_.operands.push_back({own, kAtOnce});
      } else {
        plan_.operands.push_back({{Buffer::scratch, static_cast<std::size_t>(received) * own.bytes, own.bytes}, first_receive + received});
        ++received;
      }
    }
    plan_.combines.push_back({into, first, static_cast<std::uint32_t>(size_), after_sends});
    plan_.scratch_bytes = static_cast<std::size_t>(size_ - 1) * own.bytes;
    return static_cast<ProgressIndex>(plan_.receives.size() + plan_.combines.size() - 1);
  }

  Receive into_scratch(int slot, std::size_t bytes) const {
    return {{Buffer::scratch, static_cast<std::size_t>(slot) * bytes, bytes}, {}, Verb::copy, false};
  }

  void exchange() {
    const Region all = whole(Buffer::input);
    for (int r = 0, slot = 0; r < size_; ++r) {
      if (r == rank_) continue;
      with(r);
      send(all);
      receive(into_scratch(slot++, all.bytes));
    }
    if (call_.kind == CollectiveKind::barrier) return;
    combine_in_rank_order(all, whole(Buffer::output), 0, in_place_);
  }

  void direct_all_reduce() {
    const Region own = part(Buffer::input, rank_);
    // Two receives per peer: its contribution to our part, then its finished part. Contributions come first in the numbering of scratch.
    const auto combined = static_cast<ProgressIndex>(2 * (size_ - 1));
    for (int r = 0, slot = 0; r < size_; ++r) {
      if (r == rank_) continue;
      with(r);
      send(part(Buffer::input, r));
      send(part(Buffer::output, rank_), combined);
      receive(into_scratch(slot++, own.bytes));
      receive({part(Buffer::output, r), {}, Verb::copy, false});
    }
    combine_of_contributions(own, part(Buffer::output, rank_), 2);
  }

  /// Like combine_in_rank_order, where every `stride`-th receive is a contribution.
  void combine_of_contributions(Region own, Region into, int stride) {
    combine_in_rank_order(own, into, 0, false);
    ProgressIndex receive_index = 0;
    for (auto& operand : plan_.operands) {
      if (operand.after == kAtOnce) continue;
      operand.after = receive_index;
      receive_index += stride;
    }
  }

  void direct_reduce_scatter() {
    const Region own = part(Buffer::input, rank_);
    for (int r = 0, slot = 0; r < size_; ++r) {
      if (r == rank_) continue;
      with(r);
      send(part(Buffer::input, r));
      receive(into_scratch(slot++, own.bytes));
    }
    combine_in_rank_order(own, {Buffer::output, 0, own.bytes}, 0, false);
  }

  /// With two ranks the neighbours are one peer; its sends and receives are the same lists.
  template <class Sends, class Receives>
  void with_neighbours(int right, int left, Sends sends, Receives receives) {
    with(right);
    sends();
    if (left != right) with(left);
    receives();
  }

  // Step s of the reduce-scatter sends part rank-1-s and reduces into part rank-2-s, so that rank r ends owning part r;
  // step s of the all-gather sends part rank-s and receives part rank-1-s (Patarasuk and Yuan 2009, shifted by one).
  void ring_all_reduce() {
    const int steps = size_ - 1;
    with_neighbours(
        at(1), at(-1),
        [&] {
          send(part(Buffer::input, at(-1)));
          for (int s = 1; s < steps; ++s) send(part(Buffer::output, at(-1 - s)), s - 1);
          for (int s = 0; s < steps; ++s) send(part(Buffer::output, at(-s)), steps - 1 + s);
        },
        [&] {
          for (int s = 0; s < steps; ++s) {
            const int chunk = at(-2 - s);
            receive({part(Buffer::output, chunk), part(Buffer::input, chunk), Verb::reduce, s == steps - 1});
          }
          for (int s = 0; s < steps; ++s) receive({part(Buffer::output, at(-1 - s)), {}, Verb::copy, false});
        });
  }

  void ring_reduce_scatter() {
    const int steps = size_ - 1;
    std::vector<Region> partial(static_cast<std::size_t>(steps));
    for (int s = 0; s < steps; ++s) {
      Region& region = partial[static_cast<std::size_t>(s)];
      region = part(Buffer::scratch, at(-2 - s));
      region.offset_bytes = plan_.scratch_bytes;
      if (s == steps - 1)
        region = {Buffer::output, 0, region.bytes};
      else
        plan_.scratch_bytes += region.bytes;
    }
    with_neighbours(
        at(1), at(-1),
        [&] {
          send(part(Buffer::input, at(-1)));
          for (int s = 1; s < steps; ++s) send(partial[static_cast<std::size_t>(s - 1)], s - 1);
        },
        [&] {
          for (int s = 0; s < steps; ++s)
            receive({partial[static_cast<std::size_t>(s)], part(Buffer::input, at(-2 - s)), Verb::reduce, s == steps - 1});
        });
  }

  void all_gather() {
    const Region own = whole(Buffer::input);
    const auto block = [&](int owner) { return Region{Buffer::output, static_cast<std::size_t>(owner) * own.bytes, own.bytes}; };
    plan_.copy_from = own;
    plan_.copy_to = block(rank_);
    if (call_.algorithm != Algorithm::ring) {
      for (int r = 0; r < size_; ++r) {
        if (r == rank_) continue;
        with(r);
        send(own);
        receive({block(r), {}, Verb::copy, false});
      }
      return;
    }
    const int steps = size_ - 1;
    with_neighbours(
        at(1), at(-1),
        [&] {
          send(own);
          for (int s = 1; s < steps; ++s) send(block(at(-s)), s - 1);
        },
        [&] {
          for (int s = 0; s < steps; ++s) receive({block(at(-1 - s)), {}, Verb::copy, false});
        });
  }

  void flat_broadcast() {
    if (rank_ != call_.root) {
      with(call_.root);
      receive({whole(Buffer::output), {}, Verb::copy, false});
      return;
    }
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      with(r);
      send(whole(Buffer::input));
    }
  }

  void chain_broadcast() {
    const bool first = rank_ == call_.root;
    const bool last = at(1) == call_.root;
    if (!first) {
      with(at(-1));
      receive({whole(Buffer::output), {}, Verb::copy, false});
    }
    if (last) return;
    with(at(1));
    if (first)
      send(whole(Buffer::input));
    else
      send(whole(Buffer::output), 0);
  }

  const Call& call_;
  const int rank_;
  const int size_;
  const bool in_place_;
  Plan& plan_;
};

}  // namespace

void make_plan(const Call& call, int rank, int size, bool in_place, Plan& plan) {
  RINGLET_CHECK(size >= 2 && rank >= 0 && rank < size);
  Planner(call, rank, size, in_place, plan).run();
}

}  // namespace ringlet
