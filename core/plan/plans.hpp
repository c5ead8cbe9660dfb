#pragma once

#include "core/plan/plan_writer.hpp"

namespace ringlet {

// One function per kind of collective; each writes the call's own algorithm.

/// Or a barrier: an exchange or a doubling of nothing.
void plan_all_reduce(PlanWriter& plan, bool in_place);
void plan_reduce_scatter(PlanWriter& plan);
void plan_reduce(PlanWriter& plan);
void plan_all_gather(PlanWriter& plan);
void plan_broadcast(PlanWriter& plan);
void plan_gather(PlanWriter& plan);
void plan_scatter(PlanWriter& plan);
void plan_all_to_all(PlanWriter& plan);

}  // namespace ringlet
