#pragma once

#include "core/plan/call.hpp"
#include "core/plan/plan.hpp"
#include "core/plan/topology.hpp"

namespace ringlet {

/// Writes into `plan` the steps of rank `rank` of `size` (>= 2) for `call`. `topology` says which ranks are guests. `in_place` means that
/// input and output are the same memory. Regions refer to the caller's whole input and whole output. It is a pure function: the plans of
/// all ranks fit each other.
void make_plan(const Call& call, int rank, int size, const Topology& topology, bool in_place, Plan& plan);

}  // namespace ringlet
