#include "tools/launch/launch_report.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace ringlet::launch {

namespace {

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

int report(const std::string& subcommand, const job::JobResult& result, bool quiet) {
  if (!result.error.empty()) fmt::print(stderr, "ringlet {}: {}\n", subcommand, result.error);
  if (!result.message.empty() && !quiet) fmt::print(stderr, "ringlet {}: {}\n", subcommand, result.message);
  return result.exit_code;
}

std::string to_json(const job::JobResult& result) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const job::RankExit& rank : result.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"pid", rank.pid != 0 ? nlohmann::ordered_json(rank.pid) : nlohmann::ordered_json(nullptr)},
                     {"code", or_null(rank.code)},
                     {"signal", or_null(rank.signal)},
                     {"stopped", rank.stopped}});
    if (!rank.machine.empty()) ranks.back()["host"] = rank.machine;
    if (rank.lost) ranks.back()["lost"] = true;
  }
  return nlohmann::ordered_json{{"exit_code", result.exit_code}, {"first_failed", or_null(result.first_failed)}, {"ranks", ranks}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace ringlet::launch
