#pragma once

#include <unistd.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/port_range.hpp"
#include "tools/job/job_result.hpp"
#include "tools/job/messages.hpp"
#include "tools/launch/uv_handles.hpp"
#include "transport/unique_fd.hpp"

namespace ringlet::launch {

/// A descriptor that ranks get, and the variable that tells it.
struct InheritedFd {
  const char* variable;
  int fd;
  bool with_file = false;  // told with what it stands for, so that what ranks start does not take another for it
};

/// The launcher's or agent's own part in how ranks start.
struct CrewSettings {
  std::string helper_path;                      // the `ringlet` binary, which starts itself as guard and as each rank's first image
  bool inherits_stdin = false;                  // the rank that reads standard input gets this process' own
  int guests = 0;                               // ranks beyond those of the job, which come in by themselves
  std::string guest_host{};                     // where rank 0 listens for them
  std::vector<InheritedFd> inherited{};         // borrowed, for rank 0
  std::vector<InheritedFd> inherited_by_all{};  // borrowed as long as ranks are started
  PortRange ports{};                            // where ranks listen, beyond the loopback; any: as RINGLET_PORTS says
};

/// All ranks of a job on this machine get this. The descriptors are borrowed until the ranks have been started.
struct RankStart {
  const job::StartRanks& job;
  const CrewSettings& settings;
  int failure_fd;  // the helper reports here that it cannot become the program
  int guard_fd;    // the helper registers its process group here
  std::vector<InheritedFd> inherited_by_rank_0;
  int stdin_fd = STDIN_FILENO;  // for the rank that reads standard input
  int number = 0;               // RINGLET_RANK, which is not the rank's number in the job where a group has started anew with fewer
  int restarts = 0;             // how often the rank was started before
  int trace_fd = -1;            // a file for the trace; -1: none
  std::string join{};           // doors of the group that it joins; empty: it meets the others
};

/// The ends of a rank's pipes that its starter reads.
struct RankPipes {
  UniqueFd out, err;
  UniqueFd memberships;  // a socket; only in an elastic job
};

/// One rank: a process that leads its own session and process group, with all processes that it starts within that group.
class RankProcess {
 public:
  using Clock = std::chrono::steady_clock;

  RankProcess(uv_loop_t* loop, int rank) : loop_(loop) { exit_.rank = rank; }

  /// Starts it; throws `LaunchError`. `on_dead` is called when it has died, in the
  /// order of the ranks' deaths where the system tells; `on_reaped` when its exit status is known. They come in either order, on the loop
  /// thread.
  RankPipes start(const RankStart& start, std::function<void()> on_dead, std::function<void()> on_reaped);

  const job::RankExit& exit() const noexcept { return exit_; }
  bool started() const noexcept { return exit_.pid != 0; }
  bool reaped() const noexcept { return exit_.ended(); }
  bool running() const noexcept { return started() && !reaped(); }
  bool stopping() const noexcept { return kill_at_ != Clock::time_point::max(); }
  /// Its process group has no member left (or it was never started).
  bool gone() const noexcept { return !started() || gone_; }
  /// It outlived SIGKILL for so long (a dead disk or network file system holds it) that waiting on is no use.
  bool unkillable() const noexcept { return unkillable_; }

  /// To the whole group. Does nothing once the group is gone.
  void send(int signal_number);
  /// SIGTERM now, SIGKILL after `grace`, to a rank that still runs (it then counts as stopped) or to the processes that it left behind.
  void stop(int signal_number, Clock::time_point kill_at);
  /// The signal that has stopped it, such as SIGSTOP, and that it has not gone on from. Asks the system, so SIGCHLD is the moment to ask.
  std::optional<int> find_stop();
  /// Looks whether the group is gone, and kills it if its time is up.
  void check(Clock::time_point now);

 private:
  void on_exit(std::int64_t status, int signal_number);

  uv_loop_t* loop_;
  UvProcess process_;
  UniqueFd death_watch_;
  UvPoll death_poll_;
  std::function<void()> on_dead_;
  std::function<void()> on_reaped_;
  job::RankExit exit_;
  std::optional<int> stop_signal_;
  Clock::time_point kill_at_ = Clock::time_point::max();
  bool gone_ = false;
  bool unkillable_ = false;
};

}  // namespace ringlet::launch
