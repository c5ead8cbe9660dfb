#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <ringlet/ringlet.hpp>
#include <string>

#include "tests/native/ranks.hpp"
#include "tests/pass.hpp"

namespace ringlet::test {

/// How the processes of a test's elastic group are started.
struct RankProcesses {
  int ranks = 4;
  bool encrypt = false;
  std::optional<std::chrono::milliseconds> heartbeat_timeout{};  // the usual one unless set
  OnSplit on_split = OnSplit::wait;
  std::chrono::seconds life = std::chrono::minutes(1);  // after which a process ends by itself
  /// Runs in each process before it joins the group: for machines of their own.
  std::function<void(InitOptions& options)> prepare{};
};

/// How a rank ends that the others went on without.
constexpr int kLeftOut = 3;

/// Starts a process that is a rank of the group and runs `work`.
::pid_t start_rank(int rank, const LoopbackSocket& coordinator, const RankProcesses& processes, const std::function<void(Group)>& work);

/// Starts a process that joins a group by one of these doors.
::pid_t start_newcomer(const std::string& doors, const RankProcesses& processes, const std::function<void(Group)>& work);

/// Waits for the end of a process; -1 where a signal has ended it.
int exit_code_of(::pid_t pid);

/// Kills this process after that time, which another thread spends counting, since a sleep would be too coarse.
void die_after(std::chrono::nanoseconds delay);

/// Waits until it holds; false after a minute.
bool wait_until(const std::function<bool()>& holds);

}  // namespace ringlet::test
