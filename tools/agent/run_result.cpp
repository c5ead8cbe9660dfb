// How a job has ended.

#include <fmt/format.h>

#include <algorithm>

#include "tools/agent/run_job.hpp"
#include "tools/launch/launch_report.hpp"

namespace ringlet::agent {

RunResult RunJob::make_result() const {
  RunResult result;
  result.ranks = ranks_;
  result.first_failed = first_failed_;
  if (!error_.empty()) {
    result.exit_code = error_code_;
    result.error = error_;
  } else if (lost_machine_) {
    result.exit_code = 1;
    result.message = lost_why_ + list_ranks([](const RunRank& rank) { return rank.lost; }, "; it had") +
                     list_ranks([](const RunRank& rank) { return rank.stopped; }, "; stopped");
  } else if (first_failed_) {
    const RunRank& first = ranks_[static_cast<std::size_t>(*first_failed_)];
    result.exit_code = first.signal ? 128 + *first.signal : *first.code;
    result.message = describe_failure();
  } else if (stop_signal_) {
    const bool succeeded = !ranks_.empty() && std::all_of(ranks_.begin(), ranks_.end(), [](const RunRank& rank) { return rank.code == 0; });
    result.exit_code = succeeded ? 0 : 128 + *stop_signal_;
    result.message =
        "got " + launch::signal_name(*stop_signal_) + list_ranks([](const RunRank& rank) { return rank.stopped; }, "; stopped");
  }
  return result;
}

std::string RunJob::describe_failure() const {
  const RunRank& first = ranks_[static_cast<std::size_t>(*first_failed_)];
  const std::string how =
      first.signal ? "was killed by " + launch::signal_name(*first.signal) : fmt::format("exited with code {}", *first.code);
  return fmt::format("rank {} on {} (pid {}) {}{}", first.rank, first.machine, first.pid, how,
                     list_ranks([](const RunRank& rank) { return rank.stopped; }, "; stopped"));
}

std::string RunJob::list_ranks(bool (*which)(const RunRank&), const char* before) const {
  std::vector<int> chosen;
  for (const RunRank& rank : ranks_)
    if (which(rank)) chosen.push_back(rank.rank);
  return chosen.empty() ? "" : fmt::format("{} {} {}", before, chosen.size() == 1 ? "rank" : "ranks", fmt::join(chosen, ", "));
}

}  // namespace ringlet::agent
