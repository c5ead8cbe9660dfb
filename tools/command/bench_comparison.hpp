#pragma once

#include "tools/command/bench_rank.hpp"

namespace ringlet::command {

/// These form two groups that differ in one option, measure both in turns, and print the difference on rank 0. They return the exit code,
/// and throw what forming a group and its collectives throw.
///@{
int compare_encryption(const BenchPlan& plan);
int compare_orders(const BenchPlan& plan);
///@}

}  // namespace ringlet::command
