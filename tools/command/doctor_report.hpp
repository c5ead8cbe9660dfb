#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/doctor/diagnose.hpp"

namespace ringlet::command {

/// Returns a report for people: the facts, the matrix of measured paths, and the findings with what to do. `colours` highlights severities.
std::string doctor_report(const doctor::Facts& facts, const std::vector<doctor::Finding>& findings, bool colours);

/// Returns an object that has all facts, and the findings under "findings".
nlohmann::ordered_json doctor_json(const doctor::Facts& facts, const std::vector<doctor::Finding>& findings);

}  // namespace ringlet::command
