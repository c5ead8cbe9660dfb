#pragma once

#include <ringlet/group.hpp>
#include <string>
#include <string_view>

#include "report.hpp"

namespace train_text {

/// How the group has changed: `ranks` go on, of which `joined` are new, or, where some were lost by `cause`, of so many before.
std::string change_text(int step, int ranks, int joined, int ranks_before, double pause_seconds, std::string_view cause);

/// Prints the report to standard output, for people or as a line of JSON. Throws `std::system_error` if that fails.
void print_report(const Report& report, bool as_json, std::string_view sample);

/// Waits until rank 0 has reported: where a rank whose log has failed ends before that, its launcher ends rank 0, too. All native ranks
/// call this at their end; browsers take no part, and nobody waits beside them.
void await_report(ringlet::Group group);

}  // namespace train_text
