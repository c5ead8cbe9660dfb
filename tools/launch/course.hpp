#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/launch/launch_options.hpp"
#include "tools/launch/uv_handles.hpp"

namespace ringlet::launch {

/// Decides what follows from the end of a rank, from signals and from mistakes, wherever the ranks run. Everything on the loop thread.
class Course {
 public:
  struct Actions {
    /// SIGTERM or SIGINT now, SIGKILL after `grace`, to all ranks.
    std::function<void(int signal_number, std::chrono::milliseconds grace)> stop;
    /// Any other signal, to all ranks.
    std::function<void(int signal_number)> send;
    /// A person asks for the end, and only the output can be in its way, if anything is.
    std::function<void()> give_up_output;
  };

  /// Catches the process' signals while it lives. `options` are borrowed.
  Course(uv_loop_t* loop, const LaunchOptions& options, Actions actions);

  /// A rank has ended, after those that were noted before. `exec_error`: errno where it could not become the program.
  void note_exit(const RankExit& exit, std::optional<int> exec_error);
  /// The ranks' output cannot be written; `error` is errno.
  void on_output_lost(int error);
  /// The first failure counts: exit code and sentence. Does not stop the ranks.
  void fail(int exit_code, std::string text);
  /// Ends all ranks.
  void stop(int signal_number, std::chrono::milliseconds grace);
  /// Nothing more is to happen.
  void finish() { linger_timer_.stop(); }

  bool stopping() const noexcept { return stage_ == Stage::stopping; }
  LaunchResult make_result(std::vector<RankExit> ranks) const;

 private:
  enum class Stage { running, lingering, stopping };

  void note_failure(const RankExit& exit, std::optional<int> exec_error);
  bool was_killed_first(const RankExit& exit) const;
  void on_signal(int signal_number);

  const LaunchOptions& options_;
  Actions actions_;
  std::vector<std::unique_ptr<UvSignal>> signals_;
  UvTimer linger_timer_;
  Stage stage_ = Stage::running;
  std::optional<RankExit> first_failed_;
  std::optional<int> stop_signal_;
  std::string error_;
  int error_code_ = 0;
  int interrupts_ = 0;
};

}  // namespace ringlet::launch
