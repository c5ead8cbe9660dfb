#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ringlet::command {

/// Formats a report of native/status/status_report.hpp for people: a line about the world, a heading, and a line for each rank. `colours`
/// highlights headings and ranks that make no progress. Values missing in the report are shown as "-".
std::vector<std::string> status_table(const nlohmann::ordered_json& report, bool colours);

}  // namespace ringlet::command
