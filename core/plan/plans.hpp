#pragma once

#include "core/plan/plan_writer.hpp"

namespace ringlet {

// There is one function per kind of collective, which writes the call's own algorithm.

/// Also plans a barrier, which is an all-reduce without elements.
void plan_all_reduce(PlanWriter& plan);
void plan_reduce_scatter(PlanWriter& plan);
void plan_reduce(PlanWriter& plan);
void plan_all_gather(PlanWriter& plan);
void plan_broadcast(PlanWriter& plan);
void plan_gather(PlanWriter& plan);
void plan_scatter(PlanWriter& plan);
void plan_all_to_all(PlanWriter& plan);

/// All-reduce, barrier and reduce by the hub: only native ranks own parts, not all of them if their links differ, and
/// ranks that own none exchange data with owners only.
void plan_hub_reduction(PlanWriter& plan);
void plan_hub_broadcast(PlanWriter& plan);

/// These are for groups with shared machines: ranks of one machine pass on nothing twice over the network.
void plan_machines_all_reduce(PlanWriter& plan);
void plan_machines_broadcast(PlanWriter& plan);
void plan_machines_all_gather(PlanWriter& plan);
/// Reduce-scatter, and reduce to a root.
void plan_machines_reduce_parts(PlanWriter& plan);

constexpr auto plan_of(CollectiveKind kind) -> void (*)(PlanWriter& plan) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::barrier:
      return plan_all_reduce;
    case CollectiveKind::reduce_scatter:
      return plan_reduce_scatter;
    case CollectiveKind::all_gather:
      return plan_all_gather;
    case CollectiveKind::broadcast:
      return plan_broadcast;
    case CollectiveKind::reduce:
      return plan_reduce;
    case CollectiveKind::gather:
      return plan_gather;
    case CollectiveKind::scatter:
      return plan_scatter;
    case CollectiveKind::all_to_all:
      return plan_all_to_all;
  }
  return nullptr;
}

}  // namespace ringlet
