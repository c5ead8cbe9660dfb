#pragma once

#include "tools/command/bench_rank.hpp"

namespace ringlet::command {

/// Forms a group without encryption and one with it, measures both in turns, and prints the difference on rank 0. Returns the exit code.
/// Throws what forming a group and its collectives throw.
int compare_encryption(const BenchPlan& plan);

}  // namespace ringlet::command
