#include "tools/launch/launch_report.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/launch/standard_error.hpp"

namespace ringlet::launch {

namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<int>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

int report(const std::string& subcommand, const job::JobResult& result, bool quiet) {
  if (!result.error.empty()) print_error("ringlet {}: {}\n", subcommand, result.error);
  if (!result.message.empty() && !quiet) print_error("ringlet {}: {}\n", subcommand, result.message);
  return result.exit_code;
}

Json to_json(const job::JobResult& result, const char* machine_key) {
  Json ranks = Json::array();
  for (const job::RankExit& rank : result.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"pid", rank.pid != 0 ? Json(rank.pid) : Json(nullptr)},
                     {"code", or_null(rank.code)},
                     {"signal", or_null(rank.signal)},
                     {"stopped", rank.stopped},
                     {"restarts", rank.restarts}});
    if (!rank.machine.empty()) ranks.back()[machine_key] = rank.machine;
    if (rank.lost) ranks.back()["lost"] = true;
  }
  return {{"exit_code", result.exit_code}, {"first_failed", or_null(result.first_failed)}, {"ranks", ranks}};
}

}  // namespace ringlet::launch
