#include "tools/launch/stopped_ranks.hpp"

#include <fmt/format.h>

namespace ringlet::launch {

StoppedRanks::~StoppedRanks() {
  for (const auto& [pid, timer] : stops_) loop_.cancel(timer);
}

void StoppedRanks::note_stop(const job::RankExit& rank, int signal_number) {
  const auto [stop, is_new] = stops_.try_emplace(rank.pid);
  if (!is_new) return;
  stop->second = loop_.after(kPatience, [this, number = rank.rank, pid = rank.pid, signal_number] {
    stops_[pid] = 0;
    say_(fmt::format("rank {0} (pid {1}) was stopped by {2}, and does nothing until: kill -CONT {1}", number, pid,
                     job::signal_name(signal_number)));
  });
}

void StoppedRanks::note_continuation(const job::RankExit& rank) {
  const auto stop = stops_.find(rank.pid);
  if (stop == stops_.end()) return;
  if (stop->second == 0) say_(fmt::format("rank {} (pid {}) goes on", rank.rank, rank.pid));
  forget(rank);
}

void StoppedRanks::forget(const job::RankExit& rank) {
  const auto stop = stops_.find(rank.pid);
  if (stop == stops_.end()) return;
  loop_.cancel(stop->second);
  stops_.erase(stop);
}

}  // namespace ringlet::launch
