#pragma once

#include <string>
#include <vector>

#include "tools/doctor/diagnose.hpp"

namespace ringlet::command {

/// Returns a report for people: the facts, the matrix of measured paths, and the findings with what to do. `colours` highlights severities.
std::string doctor_report(const doctor::Facts& facts, const std::vector<doctor::Finding>& findings, bool colours);

/// Returns one JSON object and a line break. It has all facts, and the findings under "findings".
std::string doctor_json(const doctor::Facts& facts, const std::vector<doctor::Finding>& findings);

}  // namespace ringlet::command
