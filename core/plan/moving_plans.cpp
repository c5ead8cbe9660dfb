#include "core/plan/plans.hpp"

namespace ringlet {

namespace {

void ring_all_gather(PlanWriter& plan) {
  const int steps = plan.size() - 1;
  plan.with_neighbours(
      [&] {
        plan.send(plan.own_part(Buffer::input));
        for (int s = 1; s < steps; ++s) plan.send(plan.part(Buffer::output, plan.at(-s)), s - 1);
      },
      [&] {
        for (int s = 0; s < steps; ++s) plan.receive(plan.part(Buffer::output, plan.at(-1 - s)));
      });
}

void direct_all_gather(PlanWriter& plan) {
  plan.with_each_peer([&](int peer, int) {
    plan.send(plan.own_part(Buffer::input));
    plan.receive(plan.part(Buffer::output, peer));
  });
}

/// In these two each rank has the part of the rank before it, which it passes on in place of its own.
void ring_all_gather_of_rest(PlanWriter& plan) {
  const int steps = plan.size() - 2;
  plan.with_neighbours(
      [&] {
        for (int s = 0; s < steps; ++s) plan.send(plan.part(Buffer::output, plan.at(-1 - s)), s == 0 ? kAtOnce : s - 1);
      },
      [&] {
        for (int s = 0; s < steps; ++s) plan.receive(plan.part(Buffer::output, plan.at(-2 - s)));
      });
}

void direct_all_gather_of_rest(PlanWriter& plan) {
  plan.with_each_peer([&](int peer, int) {
    if (peer != plan.at(1)) plan.send(plan.own_part(Buffer::input));
    if (peer != plan.at(-1)) plan.receive(plan.part(Buffer::output, peer));
  });
}

void flat_broadcast(PlanWriter& plan) {
  if (plan.is_root()) return plan.with_each_peer([&](int, int) { plan.send(plan.whole(Buffer::input)); });
  plan.with(plan.call().root);
  plan.receive(plan.whole(Buffer::output));
}

void chain_broadcast(PlanWriter& plan) {
  if (!plan.is_root()) {
    plan.with(plan.at(-1));
    plan.receive(plan.whole(Buffer::output));
  }
  if (plan.at(1) == plan.call().root) return;
  plan.with(plan.at(1));
  if (plan.is_root())
    plan.send(plan.whole(Buffer::input));
  else
    plan.send(plan.whole(Buffer::output), 0);
}

}  // namespace

void plan_all_gather(PlanWriter& plan) {
  plan.copy(plan.own_part(Buffer::input), plan.part(Buffer::output, plan.rank()));
  if (kHasMachinePlans && plan.call().algorithm == Algorithm::machines) return plan_machines_all_gather(plan);
  const bool by_ring = plan.call().algorithm == Algorithm::ring;
  if (has_part_before(plan.call())) return by_ring ? ring_all_gather_of_rest(plan) : direct_all_gather_of_rest(plan);
  by_ring ? ring_all_gather(plan) : direct_all_gather(plan);
}

void plan_broadcast(PlanWriter& plan) {
  if (plan.call().algorithm == Algorithm::hub) return plan_hub_broadcast(plan);
  if (kHasMachinePlans && plan.call().algorithm == Algorithm::machines) return plan_machines_broadcast(plan);
  plan.call().algorithm == Algorithm::ring ? chain_broadcast(plan) : flat_broadcast(plan);
}

void plan_gather(PlanWriter& plan) {
  const Region own = plan.own_part(Buffer::input);
  if (!plan.is_root()) {
    plan.with(plan.call().root);
    return plan.send(own);
  }
  plan.copy(own, plan.part(Buffer::output, plan.rank()));
  plan.with_each_peer([&](int peer, int) { plan.receive(plan.part(Buffer::output, peer)); });
}

void plan_scatter(PlanWriter& plan) {
  const Region own = plan.own_part(Buffer::output);
  if (!plan.is_root()) {
    plan.with(plan.call().root);
    return plan.receive(own);
  }
  plan.copy(plan.part(Buffer::input, plan.rank()), own);
  plan.with_each_peer([&](int peer, int) { plan.send(plan.part(Buffer::input, peer)); });
}

void plan_all_to_all(PlanWriter& plan) {
  plan.copy(plan.part(Buffer::input, plan.rank()), plan.part(Buffer::output, plan.rank()));
  // Each rank begins with its right neighbour, so that the ranks do not all send to rank 0 first.
  for (int offset = 1; offset < plan.size(); ++offset) {
    const int peer = plan.at(offset);
    plan.with(peer);
    plan.send(plan.part(Buffer::input, peer));
    plan.receive(plan.part(Buffer::output, peer));
  }
}

}  // namespace ringlet
