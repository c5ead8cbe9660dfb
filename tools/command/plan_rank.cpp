#include "tools/command/plan_rank.hpp"

#include <fmt/format.h>

#include <optional>
#include <ringlet/group.hpp>
#include <utility>

#include "tools/command/plan_links.hpp"
#include "tools/command/subcommand.hpp"
#include "tools/launch/standard_error.hpp"

namespace ringlet::command {

namespace {

/// Returns a sentence where there is nothing to predict for the group; the same on all ranks.
std::optional<std::string> check_group(const Group& group, std::size_t names) {
  if (group.size() < 2) return "one rank has nobody to talk to; start two or more";
  if (names != 0 && names != static_cast<std::size_t>(group.size()))
    return fmt::format("--names has {} names, and there are {} ranks", names, group.size());
  return std::nullopt;
}

}  // namespace

int run_plan_rank(const PlanQuestion& question, double seconds, const std::vector<std::string>& names) {
  try {
    PlanNetwork network;
    network.names = names;
    bool prints = false;
    // The others need not wait while rank 0 computes, so the group ends here.
    {
      Group group = init();
      prints = group.rank() == 0;
      if (const auto mistake = check_group(group, names.size())) {
        if (prints) launch::print_error("ringlet plan: {}\n", *mistake);
        return kUsageError;
      }
      LinkMeasurements measured = measure_links(group, seconds);
      network.ranks = prediction::network_of(group.size(), measured.machines, measured.between, measured.within);
      network.links = std::move(measured.between);
    }
    if (prints) report_plan(question, network);
    return 0;
  } catch (const Error& error) {
    launch::print_error("ringlet plan: {}\n", error.what());
    return error.status().code() == Errc::invalid_argument ? kUsageError : 1;
  }
}

}  // namespace ringlet::command
