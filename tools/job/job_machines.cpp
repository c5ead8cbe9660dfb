#include "tools/job/job_machines.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/address.hpp"

namespace ringlet::job {

JobMachine& JobMachines::add(Candidate candidate) {
  JobMachine& machine = machines_.emplace_back();
  machine.candidate = std::move(candidate);
  return machine;
}

std::size_t JobMachines::add_late(Candidate candidate) {
  // Of a machine that had no rank nothing is to be remembered.
  const auto found = std::find_if(machines_.begin(), machines_.end(), [&](const JobMachine& machine) {
    return machine.over && machine.ranks == 0 && machine.candidate.name == candidate.name;
  });
  const auto index = static_cast<std::size_t>(found - machines_.begin());
  if (found == machines_.end()) machines_.emplace_back();
  machines_[index] = {};
  machines_[index].candidate = std::move(candidate);
  machines_[index].late = true;
  return index;
}

bool JobMachines::may_return(std::size_t index) const {
  const JobMachine& machine = machines_[index];
  return machine.over && !machine.refused && (machine.ranks > 0 || (machine.offer && machine.offer->refusal.empty()));
}

std::vector<std::size_t> JobMachines::willing() const {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < machines_.size(); ++i)
    if (machines_[i].answered && machines_[i].channel) all.push_back(i);
  return all;
}

std::vector<Place> JobMachines::places_of(const std::vector<std::size_t>& machines) const {
  std::vector<Place> places;
  for (const std::size_t i : machines) {
    const JobMachine& machine = machines_[i];
    const std::size_t free_ranks = std::min<std::size_t>(machine.offer->free_ranks, kMaxRanksPerMachine);
    places.push_back({machine.candidate.name, static_cast<int>(free_ranks), machine.candidate.ranks});
  }
  return places;
}

StartRanks JobMachines::make_start(std::size_t index, StartRanks start, bool prefix) const {
  const JobMachine& machine = machines_[index];
  const Candidate& candidate = machine.candidate;
  start.first_rank = static_cast<std::uint32_t>(machine.first_rank);
  start.ranks = static_cast<std::uint32_t>(machine.ranks);
  start.world_size = static_cast<std::uint32_t>(rank_count());
  start.program = candidate.program;
  start.environment.insert(start.environment.begin(), candidate.environment.begin(), candidate.environment.end());
  start.directory = candidate.directory;
  if (prefix && start.terminal_columns > 0) {
    const auto columns = static_cast<std::uint32_t>(rank_prefix(0, rank_count(), candidate.name).size());
    start.terminal_columns = std::max(start.terminal_columns, columns + 1) - columns;
  }
  return start;
}

std::string reach_door(const std::string& door, const std::string& host) {
  const auto address = parse_address(door);
  if (!address.ok() || is_loopback(address.value()) || host.empty()) return door;
  return to_string(Address{host, address.value().port});
}

void JobMachines::give_ranks(std::size_t index, int count) {
  JobMachine& machine = machines_[index];
  machine.first_rank = rank_count();
  machine.ranks = count;
  for (int i = 0; i < count; ++i) ranks_.push_back({rank_count(), machine.candidate.name});
}

RankExit* JobMachines::find_rank(std::size_t index, std::uint32_t rank) {
  const JobMachine& machine = machines_[index];
  const auto first = static_cast<std::uint32_t>(machine.first_rank);
  if (rank < first || rank >= first + static_cast<std::uint32_t>(machine.ranks)) return nullptr;
  return &ranks_[rank];
}

bool JobMachines::note_started(std::size_t index, const RanksStarted& started) {
  JobMachine& machine = machines_[index];
  std::vector<int> ranks;
  if (machine.started) {
    if (machine.restarting.empty()) return false;
    ranks = std::move(machine.restarting.front());
    machine.restarting.pop_front();
  } else if (!machine.late) {
    for (int i = 0; i < machine.ranks; ++i) ranks.push_back(machine.first_rank + i);
  }
  if (ranks.size() != started.pids.size()) return false;
  machine.started = true;
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks_[static_cast<std::size_t>(ranks[i])].pid = static_cast<int>(started.pids[i]);
  return true;
}

std::vector<int> JobMachines::ranks_of(std::size_t index) const {
  std::vector<int> its(static_cast<std::size_t>(machines_[index].ranks));
  std::iota(its.begin(), its.end(), machines_[index].first_rank);
  return its;
}

void JobMachines::lose(std::size_t index) {
  for (const int number : ranks_of(index)) {
    RankExit& rank = ranks_[static_cast<std::size_t>(number)];
    rank.lost = !rank.ended();
  }
}

void JobMachines::restart(std::size_t index, const std::vector<int>& ranks, RestartRanks order) {
  for (const int rank : ranks) {
    RankExit& exit = ranks_[static_cast<std::size_t>(rank)];
    RankExit next{exit.rank, exit.machine};
    next.restarts = exit.restarts + (exit.ended() ? 1 : 0);
    exit = std::move(next);
    order.ranks.push_back(static_cast<std::uint32_t>(rank));
  }
  machines_[index].restarting.push_back(ranks);
  machines_[index].channel->send(order);
}

void JobMachines::stop(const std::vector<int>& ranks, Order order) {
  for (const auto& [index, its] : by_machine(ranks)) {
    order.ranks.assign(its.begin(), its.end());
    machines_[index].channel->send(order);
  }
}

std::map<std::size_t, std::vector<int>> JobMachines::by_machine(const std::vector<int>& ranks) const {
  std::map<std::size_t, std::vector<int>> found;
  for (const int rank : ranks)
    for (std::size_t i = 0; i < machines_.size(); ++i) {
      const JobMachine& machine = machines_[i];
      if (machine.channel && rank >= machine.first_rank && rank < machine.first_rank + machine.ranks) found[i].push_back(rank);
    }
  return found;
}

}  // namespace ringlet::job
