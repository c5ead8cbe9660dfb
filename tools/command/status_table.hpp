#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ringlet::command {

/// A report of native/status/status_report.hpp for people: a line about the world, a heading, and a line for each rank. `colours`: headings
/// and those that stand still stand out. What a report leaves out is shown as "-".
std::vector<std::string> status_table(const nlohmann::ordered_json& report, bool colours);

}  // namespace ringlet::command
