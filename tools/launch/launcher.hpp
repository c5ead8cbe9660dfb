#pragma once

#include <optional>

#include "tools/launch/course.hpp"
#include "tools/launch/guest_list.hpp"
#include "tools/launch/launch_options.hpp"
#include "tools/launch/local_ranks.hpp"
#include "tools/launch/pipe_reader.hpp"
#include "tools/launch/rank_output.hpp"
#include "tools/launch/uv_handles.hpp"

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
  void start();
  UniqueFd watch_guests();
  Course::Actions make_actions();
  LocalRanks::Events make_events();
  bool ranks_over() const { return !ranks_ || ranks_->over(); }
  void finish_if_over();

  LaunchOptions options_;
  UvLoop loop_;
  std::optional<Course> course_;
  std::optional<RankOutput> output_;
  std::optional<GuestList> guests_;
  std::optional<PipeReader> presence_;
  std::optional<LocalRanks> ranks_;
  bool finishing_ = false;
  bool finished_ = false;
};

}  // namespace ringlet::launch
