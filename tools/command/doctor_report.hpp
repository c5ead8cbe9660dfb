#pragma once

#include <string>
#include <vector>

#include "tools/doctor/diagnose.hpp"

namespace ringlet::command {

/// For people: what was looked at, the matrix of measured ways, and the findings with what to do. `colours`: severities stand out.
std::string doctor_report(const doctor::Facts& facts, const std::vector<doctor::Finding>& findings, bool colours);

/// One JSON object and a line's end: all facts, and the findings under "findings".
std::string doctor_json(const doctor::Facts& facts, const std::vector<doctor::Finding>& findings);

}  // namespace ringlet::command
