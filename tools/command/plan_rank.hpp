#pragma once

#include <string>
#include <vector>

#include "tools/command/plan_report.hpp"

namespace ringlet::command {

/// Joins the group, measures its links for about so many seconds, and prints the plan on rank 0. `names` are those of all ranks, or empty.
/// Returns the exit code.
int run_plan_rank(const PlanQuestion& question, double seconds, const std::vector<std::string>& names);

}  // namespace ringlet::command
