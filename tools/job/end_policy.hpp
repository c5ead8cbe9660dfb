#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/ports/event_loop.hpp"
#include "tools/job/job_result.hpp"
#include "tools/job/restart_policy.hpp"

namespace ringlet::job {

/// Decides how a job ends after the end of a rank, the loss of a machine, a signal or a mistake, wherever the ranks run: after the first
/// failure the others have `linger` to tell what they saw, then get SIGTERM, and after `grace` SIGKILL. In an elastic job they go on, and
/// the job has succeeded if one of them ends well. Belongs to the loop's thread.
class EndPolicy {
 public:
  struct Options {
    Duration linger = Duration::seconds(2);  // from the first failure to SIGTERM for the other ranks
    Duration grace = Duration::seconds(5);   // from SIGTERM to SIGKILL
    /// Set: the others go on when a rank fails or a machine is lost, and ranks are started again.
    std::optional<RestartPolicy::Options> elastic{};
  };
  struct Actions {
    /// The signal now, SIGKILL after `grace`, to all ranks; where none was started yet, none will be.
    std::function<void(int signal_number, Duration grace)> stop;
    /// Any other signal, to all ranks.
    std::function<void(int signal_number)> send;
  };

  EndPolicy(EventLoop& loop, Options options, Actions actions);
  ~EndPolicy();
  EndPolicy(const EndPolicy&) = delete;
  EndPolicy& operator=(const EndPolicy&) = delete;

  /// A rank of `program` has ended, after those that were noted before, and is not started again.
  void note_exit(const RankExit& exit, const std::string& program);
  /// A machine is lost, with ranks that had not ended; `why` is a sentence. Without `started` nothing runs anywhere.
  void note_lost(const std::string& why, bool started);
  /// An elastic job ends like others after a failure, since it has too few ranks; `why` says so.
  void give_up(std::string why);
  /// Ends all ranks. The first cause counts: exit code and sentence.
  void fail(int exit_code, std::string text);
  /// SIGINT and SIGTERM end the job, the second SIGINT at once; others are passed on. Where a rank dies of SIGHUP or SIGQUIT that was
  /// passed on, as when the terminal is closed, the job ends.
  void on_signal(int signal_number);
  /// Whether the rank has ended by such a SIGHUP or SIGQUIT, or with the exit code that shells make of it, and so is not started again.
  bool ended_by_hang_up(const RankExit& exit) const;
  /// Nothing more is to happen.
  void finish() { loop_.cancel(linger_timer_); }

  bool stopping() const noexcept { return stage_ == Stage::stopping; }
  JobResult make_result(std::vector<RankExit> ranks) const;

 private:
  enum class Stage { running, lingering, stopping };

  bool has_cause() const { return !error_.empty() || !lost_.empty() || !lack_.empty() || first_failed_ || stop_signal_; }
  int failure_code() const;
  void linger();
  void stop(int signal_number, Duration grace);

  EventLoop& loop_;
  const Options options_;
  const Actions actions_;
  TimerId linger_timer_ = 0;
  Stage stage_ = Stage::running;
  std::optional<RankExit> first_failed_;
  std::string lost_, lack_;
  std::optional<int> stop_signal_;
  std::optional<int> hang_up_;  // SIGHUP or SIGQUIT, whichever was passed on last
  std::string error_;
  int error_code_ = 0;
  int interrupts_ = 0;
};

}  // namespace ringlet::job
