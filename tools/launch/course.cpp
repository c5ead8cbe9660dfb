#include "tools/launch/course.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/launch/launch_report.hpp"

namespace ringlet::launch {

namespace {

bool is_ignored(int signal_number) {
  struct sigaction action{};
  return ::sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Course::Course(uv_loop_t* loop, const LaunchOptions& options, Actions actions)
    : options_(options), actions_(std::move(actions)), linger_timer_(loop) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    // Who started the launcher with nohup or in the background wants it to outlive these.
    if ((number == SIGHUP || number == SIGINT || number == SIGQUIT) && is_ignored(number)) continue;
    signals_.push_back(std::make_unique<UvSignal>(loop, number, [this](int received) { on_signal(received); }));
  }
}

void Course::note_exit(const RankExit& exit, std::optional<int> exec_error) {
  if (!exit.succeeded() && stage_ == Stage::running) note_failure(exit, exec_error);
  if (stage_ == Stage::lingering && was_killed_first(exit)) first_failed_ = exit;
}

void Course::note_failure(const RankExit& exit, std::optional<int> exec_error) {
  if (exec_error) {
    const bool missing = *exec_error == ENOENT;
    const std::string where = exit.host.empty() ? "" : " on " + exit.host;
    fail(missing || *exec_error == ENOTDIR ? 127 : 126,
         fmt::format("cannot run '{}'{}: {}{}", options_.command.front(), where, std::strerror(*exec_error),
                     missing ? "; name a program in PATH or give its path (a script's first line must name one too)" : ""));
    stop(SIGTERM, options_.grace);
    return;
  }
  first_failed_ = exit;
  stage_ = Stage::lingering;
  linger_timer_.start(options_.linger, [this] { stop(SIGTERM, options_.grace); });
}

/// A dying process closes its connections before the kernel tells of its death, so a peer may have noticed, exited and been noted before
/// it. Nobody dies of SIGKILL because a peer did: that rank came first.
bool Course::was_killed_first(const RankExit& exit) const {
  return exit.signal == SIGKILL && !exit.stopped && first_failed_->code.has_value();
}

void Course::on_signal(int signal_number) {
  if (signal_number != SIGINT && signal_number != SIGTERM) {
    actions_.send(signal_number);
    return;
  }
  if (signal_number == SIGINT) ++interrupts_;
  if (error_.empty() && !first_failed_ && !stop_signal_) stop_signal_ = signal_number;
  actions_.give_up_output();
  stop(signal_number, interrupts_ > 1 ? std::chrono::milliseconds(0) : options_.grace);
}

void Course::on_output_lost(int error) {
  if (error == EPIPE)
    fail(128 + SIGPIPE, "the reader of the ranks' output went away");
  else
    fail(1, fmt::format("cannot write the ranks' output: {}", std::strerror(error)));
  stop(SIGTERM, options_.grace);
}

void Course::fail(int exit_code, std::string text) {
  if (!error_.empty() || first_failed_ || stop_signal_) return;
  error_code_ = exit_code;
  error_ = std::move(text);
}

void Course::stop(int signal_number, std::chrono::milliseconds grace) {
  stage_ = Stage::stopping;
  linger_timer_.stop();
  actions_.stop(signal_number, grace);
}

LaunchResult Course::make_result(std::vector<RankExit> ranks) const {
  LaunchResult result;
  result.ranks = std::move(ranks);
  if (first_failed_) result.first_failed = first_failed_->rank;
  const bool succeeded = std::all_of(result.ranks.begin(), result.ranks.end(), [](const RankExit& rank) { return rank.succeeded(); });
  if (!error_.empty()) {
    result.exit_code = error_code_;
    result.error = error_;
  } else if (first_failed_) {
    result.exit_code = first_failed_->signal ? 128 + *first_failed_->signal : *first_failed_->code;
    result.message = describe_failure(result);
  } else if (stop_signal_) {
    result.exit_code = succeeded ? 0 : 128 + *stop_signal_;
    result.message = "got " + signal_name(*stop_signal_) + describe_stopped(result);
  }
  for (const RankExit& rank : result.ranks) {
    if (rank.pid != 0 && !rank.code && !rank.signal && !rank.lost)
      result.message += fmt::format("; rank {} (pid {}) did not end even when killed", rank.rank, rank.pid);
    if (rank.lost && result.error.empty()) result.message += fmt::format("; rank {} on {} was lost with its host", rank.rank, rank.host);
  }
  return result;
}

}  // namespace ringlet::launch
