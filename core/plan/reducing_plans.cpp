#include <algorithm>
#include <vector>

#include "core/plan/gathering.hpp"
#include "core/plan/plans.hpp"

namespace ringlet {

namespace {

void combine_all(PlanWriter& plan) {
  if (plan.call().kind == CollectiveKind::barrier) return;
  plan.combine_in_rank_order(plan.whole(Buffer::input), plan.whole(Buffer::output), 1, plan.in_place());
}

void exchange(PlanWriter& plan) {
  const Region all = plan.whole(Buffer::input);
  plan.with_each_peer([&](int, int slot) {
    plan.send(all);
    plan.receive_contribution(slot, all.bytes);
  });
  combine_all(plan);
}

/// Sends contributions number `count` - 1 to 0, where 0 is this rank's own and receive x-1 brings number x, without number `without`. All
/// of them are ready together, since the one that came last is the first, and so leave as one message with the call.
void send_gathered(PlanWriter& plan, int count, int without) {
  const Region all = plan.whole(Buffer::input);
  for (int x = count - 1; x > 0; --x)
    if (x != without) plan.send({Buffer::scratch, static_cast<std::size_t>(x - 1) * all.bytes, all.bytes}, x - 1);
  plan.send(all);
}

// The order in which contributions come stands in gathering.hpp.
void doubling(PlanWriter& plan) {
  const Region all = plan.whole(Buffer::input);
  const int size = plan.size(), core = core_size(size);
  int arrived = 0;
  const auto receive = [&](int count) {
    for (int i = 0; i < count; ++i) plan.receive_contribution(arrived++, all.bytes);
  };
  if (plan.rank() >= core) {
    plan.with_late_call(plan.rank() - core);
    plan.send(all);
    receive(size - 1);
    return combine_all(plan);
  }
  if (plan.rank() + core < size) {
    // That rank's contribution may need this call, and comes before anything is sent to it.
    plan.with(plan.rank() + core);
    receive(1);
    send_gathered(plan, size, 1);
  }
  for (int block = 1; block < core; block *= 2) {
    plan.with_late_call(plan.rank() ^ block);
    send_gathered(plan, 1 + arrived, 0);
    receive(count_gathered(plan.rank() ^ block, block, size));
  }
  combine_all(plan);
}

void direct_all_reduce(PlanWriter& plan) {
  const Region own = plan.part(Buffer::input, plan.rank());
  const Region result = plan.part(Buffer::output, plan.rank());
  // There are two receives per peer: its contribution to this rank's part, then its finished part. The combine is numbered after all
  // receives.
  constexpr int kReceivesPerPeer = 2;
  const ProgressIndex combined = kReceivesPerPeer * (plan.size() - 1);
  plan.with_each_peer([&](int peer, int slot) {
    plan.send(plan.part(Buffer::input, peer));
    plan.send(result, combined);
    plan.receive_contribution(slot, own.bytes);
    plan.receive(plan.part(Buffer::output, peer));
  });
  plan.combine_in_rank_order(own, result, kReceivesPerPeer, false);
}

/// Calls `visit(piece, step, before)` for all steps with all pieces of the parts, in the order in which they are sent. Each piece is one
/// step behind the piece before it; `before` is the number of the same piece's step before, as visits are counted.
template <class Visit>
void for_ring_steps(int pieces, int steps, Visit visit) {
  int visits = 0, first_before = 0, lowest_before = 0;
  for (int time = 0; time < steps + pieces - 1; ++time) {
    const int first = visits, lowest = std::max(0, time - steps + 1);
    for (int piece = lowest; piece <= std::min(time, pieces - 1); ++piece, ++visits)
      visit(piece, time - piece, piece == time ? kAtOnce : static_cast<ProgressIndex>(first_before + piece - lowest_before));
    first_before = first;
    lowest_before = lowest;
  }
}

// Step s of the reduce-scatter sends part rank-1-s and reduces into part rank-2-s, so that rank r ends owning part r;
// step s of the all-gather sends part rank-s and receives part rank-1-s (Patarasuk and Yuan 2009, shifted by one).
// Large parts go in pieces, each of which has come around while it is still in the processors' caches.
void ring_all_reduce(PlanWriter& plan) {
  const int half = plan.size() - 1;
  const std::size_t part_bytes = plan.call().bytes() / static_cast<std::size_t>(plan.size());
  const auto pieces = static_cast<int>(std::max<std::size_t>(part_bytes / plan.topology().ring_limits().piece_bytes, 1));
  const auto piece_of = [&](Buffer buffer, int owner, int piece) { return plan.piece(plan.part(buffer, owner), pieces, piece); };
  plan.with_neighbours(
      [&] {
        for_ring_steps(pieces, 2 * half, [&](int piece, int step, ProgressIndex before) {
          const int owner = plan.at(step < half ? -1 - step : half - step);
          plan.send(piece_of(step == 0 ? Buffer::input : Buffer::output, owner, piece), before);
        });
      },
      [&] {
        for_ring_steps(pieces, 2 * half, [&](int piece, int step, ProgressIndex) {
          const int owner = plan.at(step < half ? -2 - step : half - 1 - step);
          const Region into = piece_of(Buffer::output, owner, piece);
          if (step >= half) return plan.receive(into);
          plan.receive_to_reduce(into, piece_of(Buffer::input, owner, piece), step == half - 1);
        });
      });
}

void ring_reduce_scatter(PlanWriter& plan) {
  const int steps = plan.size() - 1;
  std::vector<Region> partial;
  for (int s = 0; s < steps - 1; ++s) partial.push_back(plan.take_scratch(plan.part(Buffer::input, plan.at(-2 - s)).bytes));
  partial.push_back({Buffer::output, 0, plan.part(Buffer::input, plan.rank()).bytes});
  plan.with_neighbours(
      [&] {
        plan.send(plan.part(Buffer::input, plan.at(-1)));
        for (int s = 1; s < steps; ++s) plan.send(partial[static_cast<std::size_t>(s - 1)], s - 1);
      },
      [&] {
        for (int s = 0; s < steps; ++s)
          plan.receive_to_reduce(partial[static_cast<std::size_t>(s)], plan.part(Buffer::input, plan.at(-2 - s)), s == steps - 1);
      });
}

void direct_reduce_scatter(PlanWriter& plan) {
  const Region own = plan.part(Buffer::input, plan.rank());
  plan.with_each_peer([&](int peer, int slot) {
    plan.send(plan.part(Buffer::input, peer));
    plan.receive_contribution(slot, own.bytes);
  });
  plan.combine_in_rank_order(own, {Buffer::output, 0, own.bytes}, 1, false);
}

void direct_reduce(PlanWriter& plan) {
  const Region all = plan.whole(Buffer::input);
  if (!plan.is_root()) {
    plan.with(plan.call().root);
    return plan.send(all);
  }
  plan.with_each_peer([&](int, int slot) { plan.receive_contribution(slot, all.bytes); });
  plan.combine_in_rank_order(all, plan.whole(Buffer::output), 1, false);
}

// The chain goes from the root's right neighbour around to the root. No edge carries more than one buffer, whatever the number of ranks.
void chain_reduce(PlanWriter& plan) {
  const Region all = plan.whole(Buffer::input);
  if (plan.at(-1) == plan.call().root) {
    plan.with(plan.at(1));
    return plan.send(all);
  }
  const Region partial = plan.is_root() ? plan.whole(Buffer::output) : plan.take_scratch(all.bytes);
  plan.with(plan.at(-1));
  plan.receive_to_reduce(partial, all, plan.is_root());
  if (plan.is_root()) return;
  plan.with(plan.at(1));
  plan.send(partial, 0);
}

}  // namespace

void plan_all_reduce(PlanWriter& plan) {
  switch (plan.call().algorithm) {
    case Algorithm::exchange:
      return exchange(plan);
    case Algorithm::direct:
      return direct_all_reduce(plan);
    case Algorithm::ring:
      return ring_all_reduce(plan);
    case Algorithm::doubling:
      return doubling(plan);
    case Algorithm::hub:
      return plan_hub_reduction(plan);
    case Algorithm::machines:
      if (kHasMachinePlans) plan_machines_all_reduce(plan);
      return;
  }
}

void plan_reduce_scatter(PlanWriter& plan) {
  if (kHasMachinePlans && plan.call().algorithm == Algorithm::machines) return plan_machines_reduce_parts(plan);
  plan.call().algorithm == Algorithm::ring ? ring_reduce_scatter(plan) : direct_reduce_scatter(plan);
}

void plan_reduce(PlanWriter& plan) {
  if (plan.call().algorithm == Algorithm::hub) return plan_hub_reduction(plan);
  if (kHasMachinePlans && plan.call().algorithm == Algorithm::machines) return plan_machines_reduce_parts(plan);
  plan.call().algorithm == Algorithm::ring ? chain_reduce(plan) : direct_reduce(plan);
}

}  // namespace ringlet
