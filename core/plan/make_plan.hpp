#pragma once

#include "core/plan/call.hpp"
#include "core/plan/plan.hpp"
#include "core/plan/topology.hpp"

namespace ringlet {

/// Writes into `plan` what rank `rank` of `size` (>= 2), of whom `topology` says who is a guest, does for `call`. `in_place`: input and
/// output are the same memory.
/// Regions of the input refer to the caller's whole input; of the output likewise. Pure: all ranks' plans fit each other.
void make_plan(const Call& call, int rank, int size, const Topology& topology, bool in_place, Plan& plan);

}  // namespace ringlet
