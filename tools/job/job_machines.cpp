#include "tools/job/job_machines.hpp"

#include <utility>

namespace ringlet::job {

JobMachine& JobMachines::add(Candidate candidate) {
  JobMachine& machine = machines_.emplace_back();
  machine.candidate = std::move(candidate);
  return machine;
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
  } else {
    for (int i = 0; i < machine.ranks; ++i) ranks.push_back(machine.first_rank + i);
  }
  if (ranks.size() != started.pids.size()) return false;
  machine.started = true;
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks_[static_cast<std::size_t>(ranks[i])].pid = static_cast<int>(started.pids[i]);
  return true;
}

std::vector<int> JobMachines::lose(std::size_t index) {
  const JobMachine& machine = machines_[index];
  std::vector<int> its;
  for (int i = 0; i < machine.ranks; ++i) {
    RankExit& rank = ranks_[static_cast<std::size_t>(machine.first_rank + i)];
    rank.lost = !rank.ended();
    its.push_back(rank.rank);
  }
  return its;
}

void JobMachines::restart(std::size_t index, const std::vector<int>& ranks, RestartRanks order) {
  for (const int rank : ranks) {
    RankExit& exit = ranks_[static_cast<std::size_t>(rank)];
    RankExit next{exit.rank, exit.machine};
    next.restarts = exit.restarts + 1;
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
