#pragma once

#include "core/plan/plan_writer.hpp"

namespace ringlet {

// One function per kind of collective; each writes the call's own algorithm.

/// Or a barrier: an all-reduce of nothing.
void plan_all_reduce(PlanWriter& plan, bool in_place);
void plan_reduce_scatter(PlanWriter& plan);
void plan_reduce(PlanWriter& plan);
void plan_all_gather(PlanWriter& plan);
void plan_broadcast(PlanWriter& plan);
void plan_gather(PlanWriter& plan);
void plan_scatter(PlanWriter& plan);
void plan_all_to_all(PlanWriter& plan);

/// All-reduce, barrier and reduce by leaves: only natives own parts, and ranks that own none send and receive nothing but with them.
void plan_leaves_reduction(PlanWriter& plan);
void plan_leaves_broadcast(PlanWriter& plan);

}  // namespace ringlet
