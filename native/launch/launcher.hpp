#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "native/launch/guard.hpp"
#include "native/launch/guest_list.hpp"
#include "native/launch/launch_options.hpp"
#include "native/launch/pipe_reader.hpp"
#include "native/launch/rank_output.hpp"
#include "native/launch/rank_process.hpp"
#include "native/launch/uv_handles.hpp"

namespace ringlet::launch {

/// Runs N copies of a program on this machine as the ranks of one group, until none of their processes is left.
///
/// When a rank fails, the others have `linger` to tell what they saw, then get SIGTERM, and after `grace` SIGKILL. SIGINT and SIGTERM to
/// the launcher go to all ranks, with SIGKILL after `grace` or at the second SIGINT; SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 only go to all
/// ranks. Each is sent to the rank's process group; a process that leaves that group is on its own. SIGHUP and SIGINT stay ignored where
/// the launcher was started so.
class Launcher {
 public:
  explicit Launcher(LaunchOptions options);

  /// Starts the ranks and waits for their end; to be called once, from the thread that owns the process' signal handling. Writes the ranks'
  /// output to the process' stdout and stderr, and returns everything else. From here on SIGPIPE is ignored
  /// and, on Linux, orphaned descendants are adopted.
  LaunchResult run();

 private:
  enum class Stage { running, lingering, stopping };

  void start();
  UniqueFd watch_guests();
  void start_rank(int rank, const RankStart& start);
  void watch_signals();
  void note_deaths();
  void note_exit(RankProcess& rank);
  void note_failure(int rank);
  bool was_killed_first(const RankExit& exit) const;
  void on_signal(int signal_number);
  void on_output_lost(int error);
  void fail(int exit_code, std::string text);
  void stop_ranks(int signal_number, std::chrono::milliseconds grace);
  void sweep();
  bool ranks_over() const;
  void finish_if_over();
  std::optional<int> read_exec_error();
  LaunchResult make_result() const;

  LaunchOptions options_;
  UvLoop loop_;
  UniqueFd failures_;  // where helpers report that they cannot become the program
  std::vector<std::unique_ptr<UvSignal>> signals_;
  std::optional<Guard> guard_;
  std::optional<RankOutput> output_;
  std::optional<GuestList> guests_;
  std::optional<PipeReader> presence_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  struct Progress {
    bool noted = false;      // its exit has been dealt with
    bool forgotten = false;  // the guard and the output know that no process is left
  };
  std::vector<Progress> progress_;  // per rank
  std::deque<int> deaths_;          // ranks that have died and whose exit is not yet noted, first death first
  UvTimer linger_timer_{loop_.get()};
  UvTimer sweep_timer_{loop_.get()};

  Stage stage_ = Stage::running;
  std::optional<int> first_failed_;
  std::optional<int> stop_signal_;
  std::string error_;
  int error_code_ = 0;
  int interrupts_ = 0;
  bool finishing_ = false;
  bool finished_ = false;
};

}  // namespace ringlet::launch
