#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace ringlet::command {

/// Which worlds to show; nothing set: all of this user's on this machine.
struct StatusFilter {
  std::optional<int> process;
  std::optional<std::uint64_t> world;
};

/// The report of each world (native/status/status_report.hpp), as one of its ranks on this machine gives it. Where none of them answers
/// within `patience`, one that says so of those ranks. Blocks.
std::vector<nlohmann::ordered_json> ask_worlds(const StatusFilter& filter, std::chrono::milliseconds patience);

}  // namespace ringlet::command
