#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <ringlet/ringlet.hpp>
#include <string>

#include "tests/native/ranks.hpp"
#include "tests/pass.hpp"

namespace ringlet::test {

/// How the processes of a test's elastic group are started.
struct RankProcesses {
  int ranks = 4;
  bool encrypt = false;
  std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(4);
};

/// How a rank ends that the others went on without.
constexpr int kLeftOut = 3;

/// Starts a process that joins the group and runs `work`. It ends by itself after a minute.
::pid_t start_rank(int rank, const LoopbackSocket& coordinator, const RankProcesses& processes, const std::function<void(Group)>& work);

/// Starts a process that joins a group by one of these doors.
::pid_t start_newcomer(const std::string& doors, const RankProcesses& processes, const std::function<void(Group)>& work);

/// Waits for the end of a process; -1 where a signal has ended it.
int exit_code_of(::pid_t pid);

/// Waits until it holds; false after a minute.
bool wait_until(const std::function<bool()>& holds);

}  // namespace ringlet::test
