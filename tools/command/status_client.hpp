#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace ringlet::command {

/// Chooses the worlds to show. If nothing is set, these are all of this user's worlds on this machine.
struct StatusFilter {
  std::optional<int> process;
  std::optional<std::uint64_t> world;
};

/// Returns the report of each world (native/status/status_report.hpp), taken from one of its ranks on this machine. If none of them answers
/// within `patience`, its report says so of those ranks. Blocks.
std::vector<nlohmann::ordered_json> ask_worlds(const StatusFilter& filter, std::chrono::milliseconds patience);

}  // namespace ringlet::command
