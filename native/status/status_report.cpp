#include "native/status/status_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ringlet::native {

namespace {

using Json = nlohmann::ordered_json;

double seconds(std::uint64_t milliseconds) { return static_cast<double>(milliseconds) / 1000; }

Json to_json(const wire::OperationState& operation) {
  return {{"call", operation.call},
          {"number", operation.number},
          {"stream", operation.stream},
          {"group", operation.group},
          {"seconds", seconds(operation.milliseconds)},
          {"received", operation.received},
          {"to_receive", operation.to_receive},
          {"sent", operation.sent},
          {"to_send", operation.to_send},
          {"waits_for", operation.waits_for}};
}

Json to_json(int rank, const wire::RankState& state) {
  Json running = Json::array();
  for (const auto& operation : state.running) running.push_back(to_json(operation));
  return {{"rank", rank},
          {"state", state.running.empty() ? "computing" : "in_operation"},
          {"host", state.host},
          {"pid", state.pid},
          {"program", state.program},
          {"stalled", state.stalled},
          {"running", running},
          {"last", state.last.call.empty() ? Json() : to_json(state.last)},
          {"operations", state.operations},
          {"bytes_sent", state.bytes_sent},
          {"bytes_received", state.bytes_received},
          {"links", state.links},
          {"cipher", state.cipher},
          {"parts", state.parts.empty() ? Json() : Json(state.parts)}};
}

Json to_json(const GroupState& group) {
  Json change;
  if (group.change)
    change = {{"lost", group.change->lost},
              {"cause", group.change->lost.empty() ? Json() : Json(group.change->cause)},
              {"joined", group.change->joined},
              {"milliseconds", static_cast<double>(group.change->pause.nanoseconds) / 1e6}};
  return {{"epoch", group.epoch}, {"lineage", fmt::format("{:016x}", group.lineage)},
          {"rank", group.rank},   {"size", group.size},
          {"door", group.door},   {"change", change}};
}

/// The texts of other ranks are not always UTF-8.
std::string to_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string membership_report(const GroupState& group) { return to_line(to_json(group)); }

std::string loss_report(int rank) { return to_line({{"ended_by_loss_of", rank}}); }

std::string status_report(const ringlet::World& world, std::uint64_t world_id, const Survey& survey,
                          const std::optional<GroupState>& group) {
  Json elastic;
  if (group) {
    elastic = to_json(*group);
    elastic["lost_ranks"] = group->lost;
    elastic["joined_ranks"] = group->joined;
  }
  const WorldOptions& options = world.options();
  bool stalled = !world.failure().ok();
  Json ranks = Json::array();
  for (int rank = 0; rank < options.size; ++rank) {
    const auto told = survey.told.find(rank);
    if (rank == options.rank || told != survey.told.end()) {
      const wire::RankState state = rank == options.rank ? world.state() : told->second;
      stalled |= state.stalled;
      ranks.push_back(to_json(rank, state));
    } else {
      const bool asked = std::find(survey.asked.begin(), survey.asked.end(), rank) != survey.asked.end();
      stalled |= asked;
      ranks.push_back({{"rank", rank}, {"state", asked ? "not_answering" : "not_asked"}});
    }
  }
  const Json report{{"format", 1},
                    {"world", fmt::format("{:016x}", world_id)},
                    {"size", options.size},
                    {"told_by", options.rank},
                    {"failure", world.failure().ok() ? Json() : Json(world.failure().text())},
                    {"stalled", stalled},
                    {"elastic", elastic},
                    {"ranks", ranks}};
  return to_line(report);
}

}  // namespace ringlet::native
