#include "core/plan/make_plan.hpp"

#include "core/base/check.hpp"
#include "core/plan/plans.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kReducedInCaches = 8 << 20;  // of a call

}  // namespace

void Plan::clear() {
  peers.clear();
  sends.clear();
  receives.clear();
  combines.clear();
  operands.clear();
  copy_from = copy_to = {};
  scratch_bytes = 0;
  segment_bytes = SIZE_MAX;
  reduces_in_caches = false;
}

void make_plan(const Call& call, int rank, int size, const Topology& topology, bool in_place, Plan& plan) {
  RINGLET_CHECK(size >= 2 && rank >= 0 && rank < size);
  plan.clear();
  plan.reduces_in_caches = reduces(call.kind) && call.bytes() < kReducedInCaches;
  PlanWriter writer(call, rank, size, topology, in_place, plan);
  plan_of(call.kind)(writer);
}

}  // namespace ringlet
