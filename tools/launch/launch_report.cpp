#include "tools/launch/launch_report.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace ringlet::launch {

namespace {

template <class Condition>
std::string list_ranks(const LaunchResult& result, Condition condition) {
  std::vector<int> ranks;
  for (const RankExit& rank : result.ranks)
    if (condition(rank)) ranks.push_back(rank.rank);
  if (ranks.empty()) return "";
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string signal_name(int signal_number) {
  struct Name {
    int number;
    std::string_view name;
  };
  static constexpr std::array<Name, 19> kNames{{{SIGHUP, "SIGHUP"},
                                                {SIGINT, "SIGINT"},
                                                {SIGQUIT, "SIGQUIT"},
                                                {SIGILL, "SIGILL"},
                                                {SIGTRAP, "SIGTRAP"},
                                                {SIGABRT, "SIGABRT"},
                                                {SIGBUS, "SIGBUS"},
                                                {SIGFPE, "SIGFPE"},
                                                {SIGKILL, "SIGKILL"},
                                                {SIGUSR1, "SIGUSR1"},
                                                {SIGSEGV, "SIGSEGV"},
                                                {SIGUSR2, "SIGUSR2"},
                                                {SIGPIPE, "SIGPIPE"},
                                                {SIGALRM, "SIGALRM"},
                                                {SIGTERM, "SIGTERM"},
                                                {SIGXCPU, "SIGXCPU"},
                                                {SIGXFSZ, "SIGXFSZ"},
                                                {SIGSYS, "SIGSYS"},
                                                {SIGVTALRM, "SIGVTALRM"}}};
  const auto* found = std::find_if(kNames.begin(), kNames.end(), [&](const Name& name) { return name.number == signal_number; });
  return found == kNames.end() ? fmt::format("signal {}", signal_number) : std::string(found->name);
}

std::string describe_stopped(const LaunchResult& result) {
  const std::string stopped = list_ranks(result, [](const RankExit& rank) { return rank.stopped; });
  return stopped.empty() ? "" : "; stopped " + stopped;
}

std::string describe_failure(const LaunchResult& result) {
  const RankExit& first = result.ranks[static_cast<std::size_t>(*result.first_failed)];
  const std::string how = first.signal ? "was killed by " + signal_name(*first.signal) : fmt::format("exited with code {}", *first.code);
  const std::string after = list_ranks(
      result, [&](const RankExit& rank) { return rank.rank != first.rank && !rank.stopped && !rank.succeeded() && rank.pid != 0; });
  return fmt::format("rank {}{} (pid {}) {}{}{}", first.rank, first.host.empty() ? "" : " on " + first.host, first.pid, how,
                     describe_stopped(result), after.empty() ? "" : "; after it failed " + after);
}

std::string to_json(const LaunchResult& result) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const RankExit& rank : result.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"pid", rank.pid != 0 ? nlohmann::ordered_json(rank.pid) : nlohmann::ordered_json(nullptr)},
                     {"code", or_null(rank.code)},
                     {"signal", or_null(rank.signal)},
                     {"stopped", rank.stopped}});
    if (!rank.host.empty()) ranks.back()["host"] = rank.host;
    if (rank.lost) ranks.back()["lost"] = true;
  }
  return nlohmann::ordered_json{{"exit_code", result.exit_code}, {"first_failed", or_null(result.first_failed)}, {"ranks", ranks}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace ringlet::launch
