#include "core/plan/make_plan.hpp"

#include "core/base/check.hpp"
#include "core/plan/plans.hpp"

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

void make_plan(const Call& call, int rank, int size, const Topology& topology, bool in_place, Plan& plan) {
  RINGLET_CHECK(size >= 2 && rank >= 0 && rank < size);
  plan.clear();
  PlanWriter writer(call, rank, size, topology, plan);
  switch (call.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::barrier:
      return plan_all_reduce(writer, in_place);
    case CollectiveKind::reduce_scatter:
      return plan_reduce_scatter(writer);
    case CollectiveKind::all_gather:
      return plan_all_gather(writer);
    case CollectiveKind::broadcast:
      return plan_broadcast(writer);
    case CollectiveKind::reduce:
      return plan_reduce(writer);
    case CollectiveKind::gather:
      return plan_gather(writer);
    case CollectiveKind::scatter:
      return plan_scatter(writer);
    case CollectiveKind::all_to_all:
      return plan_all_to_all(writer);
  }
}

}  // namespace ringlet
