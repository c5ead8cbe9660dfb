#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/job/job.hpp"
#include "tools/launch/hosts/input_feed.hpp"
#include "tools/launch/rank_output.hpp"
#include "tools/launch/uv_handles.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet::launch {

/// Runs a job for a person: shows the ranks' output, passes the process' signals and standard input on, and knows when all is over. The
/// caller reaches the machines. Belongs to the thread that owns the process' signal handling.
///
/// Where the reader of the output goes away, the job ends. Where it cannot be written for another reason, the job goes on, and its exit
/// code is not 0. SIGINT and SIGTERM end the job; SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to all ranks. SIGHUP, SIGINT and
/// SIGQUIT stay ignored where the process was started so.
class JobRunner {
 public:
  struct Hooks {
    std::function<void(const std::vector<job::RankExit>&)> on_chosen = [](const auto&) {};  // it is known which machines take part
    std::function<void()> on_started = [] {};                                               // all ranks have been started
    std::function<void(int)> on_listening = {};                                             // gets the port where the ranks meet
    std::function<void(const job::TracePiece&)> on_trace = {};                              // of ranks that have ended
    bool feeds_input = false;  // the rank that reads standard input is on another machine
  };

  /// From here on SIGPIPE is ignored. `loop` outlives it.
  JobRunner(UvLoop& loop, RankOutput::Options output);

  RankOutput& output() { return output_; }
  /// To be called once; the job then waits for its machines.
  job::Job& start(job::JobOptions options, std::vector<job::Candidate> candidates, Hooks hooks);
  /// Ends without a job, or before it has begun.
  void give_up(int exit_code, std::string why);
  /// Until the job is over and its output is written.
  job::JobResult run();
  bool over() const { return over_; }

 private:
  void watch_signals();
  void on_signal(int signal_number);
  void on_output_lost();
  void end_if_written();
  void feed_input();

  UvLoop& loop_;
  RankOutput output_;
  std::vector<std::unique_ptr<UvSignal>> signals_;
  std::optional<InputFeed> input_;
  Hooks hooks_;
  std::unique_ptr<job::Job> job_;
  std::optional<job::JobResult> result_;
  int output_error_ = 0;  // an errno
  bool over_ = false;
};

}  // namespace ringlet::launch
