#include "tools/job/job_result.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace ringlet::job {

namespace {

std::string times(int count) { return count == 1 ? "once" : fmt::format("{} times", count); }

}  // namespace

std::string signal_name(int signal_number) {
  struct Name {
    int number;
    std::string_view name;
  };
  static constexpr std::array<Name, 23> kNames{{{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},    {SIGILL, "SIGILL"},
                                                {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},      {SIGFPE, "SIGFPE"},
                                                {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"},    {SIGUSR2, "SIGUSR2"},
                                                {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},    {SIGSTOP, "SIGSTOP"},
                                                {SIGTSTP, "SIGTSTP"}, {SIGTTIN, "SIGTTIN"}, {SIGTTOU, "SIGTTOU"},    {SIGXCPU, "SIGXCPU"},
                                                {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"},   {SIGVTALRM, "SIGVTALRM"}}};
  const auto* found = std::find_if(kNames.begin(), kNames.end(), [&](const Name& name) { return name.number == signal_number; });
  return found == kNames.end() ? fmt::format("signal {}", signal_number) : std::string(found->name);
}

std::string list_ranks(const std::vector<int>& ranks) {
  return ranks.empty() ? "" : fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string list_ranks(const std::vector<RankExit>& ranks, bool (*chosen)(const RankExit&)) {
  std::vector<int> numbers;
  for (const RankExit& rank : ranks)
    if (chosen(rank)) numbers.push_back(rank.rank);
  return list_ranks(numbers);
}

std::string describe_stopped(const std::vector<RankExit>& ranks) {
  const std::string stopped = list_ranks(ranks, [](const RankExit& rank) { return rank.stopped; });
  return stopped.empty() ? "" : "; stopped " + stopped;
}

std::string describe_end(const RankExit& rank) {
  const std::string how =
      rank.signal ? "was killed by " + signal_name(*rank.signal) : fmt::format("exited with code {}", rank.code.value_or(0));
  return fmt::format("rank {}{} (pid {}) {}", rank.rank, rank.machine.empty() ? "" : " on " + rank.machine, rank.pid, how);
}

std::string describe_failure(const std::vector<RankExit>& ranks, int first_failed) {
  std::vector<RankExit> others = ranks;
  const RankExit first = others[static_cast<std::size_t>(first_failed)];
  others.erase(others.begin() + first_failed);
  const std::string after = list_ranks(others, [](const RankExit& rank) { return !rank.stopped && !rank.succeeded() && rank.ended(); });
  return describe_end(first) + describe_stopped(ranks) + (after.empty() ? "" : "; after it failed " + after);
}

std::string describe_failed(const std::vector<RankExit>& ranks) {
  std::vector<std::string> gone;
  for (const RankExit& rank : ranks) {
    if (rank.succeeded()) continue;
    const std::string how = rank.lost      ? "lost with its machine"
                            : rank.stopped ? "stopped"
                            : rank.signal  ? "killed by " + signal_name(*rank.signal)
                            : rank.code    ? fmt::format("exited with code {}", *rank.code)
                                           : "not started";
    const std::string again = rank.restarts == 0 ? "" : fmt::format(", started again {}", times(rank.restarts));
    gone.push_back(fmt::format("rank {}{} ({}{})", rank.rank, rank.machine.empty() ? "" : " on " + rank.machine, how, again));
  }
  return fmt::format("{}", fmt::join(gone, ", "));
}

std::string describe_restarts(const std::vector<RankExit>& ranks) {
  std::vector<std::string> again;
  for (const RankExit& rank : ranks)
    if (rank.restarts > 0) again.push_back(fmt::format("rank {} ({})", rank.rank, times(rank.restarts)));
  return again.empty() ? "" : fmt::format("; started again: {}", fmt::join(again, ", "));
}

std::string describe_survival(const std::vector<RankExit>& ranks) {
  const std::string left = list_ranks(ranks, [](const RankExit& rank) { return rank.succeeded(); });
  return fmt::format("{} went on to the end without {}", left, describe_failed(ranks));
}

std::string rank_prefix(int rank, int world_size, const std::string& machine) {
  return fmt::format("[{:>{}}{}{}] ", rank, fmt::formatted_size("{}", world_size - 1), machine.empty() ? "" : " ", machine);
}

}  // namespace ringlet::job
