#include "tools/job/job_restarts.hpp"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace ringlet::job {

JobRestarts::JobRestarts(EventLoop& loop, const JobOptions& options, JobMachines& machines, EndPolicy& policy, Hooks hooks)
    : options_(options),
      machines_(machines),
      policy_(policy),
      hooks_(std::move(hooks)),
      restarter_(loop, *options.end.elastic, make_actions()) {}

Restarter::Actions JobRestarts::make_actions() {
  Restarter::Actions actions;
  actions.join = [this](const std::vector<int>& ranks, const std::string& doors) { join(ranks, doors); };
  actions.start_anew = [this](const std::vector<int>& ranks) { start_anew(ranks); };
  actions.stop = [this](const std::vector<int>& ranks) { machines_.stop(ranks, order_to_end()); };
  actions.give_up = [this](std::string why) { policy_.give_up(std::move(why)); };
  actions.end = hooks_.end;
  actions.say = hooks_.tell_progress;
  return actions;
}

Order JobRestarts::order_to_end() const {
  return {static_cast<std::uint32_t>(SIGTERM), true, static_cast<std::uint32_t>(options_.end.grace.whole_milliseconds())};
}

int JobRestarts::wanted_ranks() const {
  if (!options_.most || !restarter_.goes_on()) return 0;
  const int left = restarter_.left();
  const int room = std::min(*options_.most - left, static_cast<int>(kMaxWorldSize) - machines_.rank_count());
  return std::max(std::min(room, std::max(options_.wish.per_machine, options_.end.elastic->least - left)), 0);
}

void JobRestarts::note_member(std::size_t index, Membership membership) {
  membership.door = reach_door(membership.door, reached_as(options_, machines_, index));
  restarter_.note_member(membership);
}

void JobRestarts::note_lost(std::size_t index) {
  for (const int rank : machines_.ranks_of(index)) restarter_.note_lost(rank);
  if (renewal_) leave_renewal(index);
}

void JobRestarts::let_go(std::size_t index, const Failed& failed) {
  machines_[index].refused = true;
  note_lost(index);
  if (restarter_.left() == 0) return policy_.fail(static_cast<int>(failed.exit_code), failed.text);
  hooks_.on_notice("a machine takes no part any more; " + failed.text);
  policy_.note_lost(failed.text, true);
}

/// Where it is not, its ranks are ended.
bool JobRestarts::is_still_trusted(std::size_t index) {
  JobMachine& machine = machines_[index];
  if (!options_.check_identity) return true;
  const auto why = options_.check_identity(machine.candidate, *machine.offer, machine.channel->binding());
  if (!why) return true;
  machine.channel->send(order_to_end());
  machine.channel->expect_end();
  let_go(index, {static_cast<std::uint32_t>(kNotAllowed), *why});
  return false;
}

void JobRestarts::join(const std::vector<int>& ranks, const std::string& doors) {
  for (const auto& [index, its] : machines_.by_machine(ranks))
    if (is_still_trusted(index)) machines_.restart(index, its, {{}, doors});
}

void JobRestarts::start_anew(const std::vector<int>& ranks) {
  std::vector<std::size_t> machines;
  std::vector<int> trusted;
  for (const auto& [index, its] : machines_.by_machine(ranks)) {
    if (!is_still_trusted(index)) continue;
    machines.push_back(index);
    trusted.insert(trusted.end(), its.begin(), its.end());
  }
  if (machines.empty()) return;
  renewal_ = Renewal{machines.front(), trusted};
  hooks_.ask_to_listen(machines);
}

void JobRestarts::start_renewed(const std::string& coordinator) {
  const std::vector<int> ranks = std::exchange(renewal_, std::nullopt)->ranks;
  if (policy_.stopping()) return;
  std::uint32_t first = 0;
  for (const auto& [index, its] : machines_.by_machine(ranks)) {
    machines_.restart(index, its, {{}, {}, first, static_cast<std::uint32_t>(ranks.size()), coordinator});
    first += static_cast<std::uint32_t>(its.size());
  }
}

/// Where the machine was to listen, another one does.
void JobRestarts::leave_renewal(std::size_t index) {
  Renewal renewal = *std::exchange(renewal_, std::nullopt);
  std::erase_if(renewal.ranks, [&](int rank) { return machines_.find_rank(index, static_cast<std::uint32_t>(rank)) != nullptr; });
  if (index == renewal.machine) return start_anew(renewal.ranks);
  renewal_ = std::move(renewal);
}

}  // namespace ringlet::job
