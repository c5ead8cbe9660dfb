#include "tools/job/end_policy.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ringlet::job {

namespace {

/// Whether a rank may have ended so because another one was lost: it exits, leaves an exception uncaught, or writes to what is closed. Any
/// other signal is a cause of its own.
bool may_follow_another(const RankExit& exit) { return exit.code || exit.signal == SIGABRT || exit.signal == SIGPIPE; }

/// Whether a rank that was noted later failed before this one. A dying process closes its connections before the kernel reports its death,
/// so a peer may have noticed, exited and been noted before it.
bool came_first(const RankExit& later, const RankExit& noted) {
  return noted.follows ? *noted.follows == later.rank : may_follow_another(noted) && !may_follow_another(later);
}

}  // namespace

EndPolicy::EndPolicy(EventLoop& loop, Options options, Actions actions)
    : loop_(loop), options_(std::move(options)), actions_(std::move(actions)) {}

EndPolicy::~EndPolicy() { loop_.cancel(linger_timer_); }

void EndPolicy::note_exit(const RankExit& exit, const std::string& program) {
  if (exit.succeeded() || exit.stopped) return;
  if (stage_ == Stage::running && exit.exec_error != 0) {
    const bool missing = exit.exec_error == ENOENT;
    fail(missing || exit.exec_error == ENOTDIR ? 127 : 126,
         fmt::format("cannot run '{}'{}: {}{}", program, exit.machine.empty() ? "" : " on " + exit.machine, std::strerror(exit.exec_error),
                     missing ? "; name a program in PATH or give its path (a script's first line must name one too)" : ""));
  } else if (stage_ == Stage::running && options_.elastic && ended_by_hang_up(exit)) {
    stop_signal_ = hang_up_;
    stop(SIGTERM, options_.grace);
  } else if (stage_ == Stage::running && options_.elastic) {
    if (!first_failed_) first_failed_ = exit;
  } else if (stage_ == Stage::running) {
    first_failed_ = exit;
    linger();
  } else if (stage_ == Stage::lingering && first_failed_ && came_first(exit, *first_failed_)) {
    first_failed_ = exit;
  }
}

void EndPolicy::note_lost(const std::string& why, bool started) {
  if (options_.elastic && started) {
    if (lost_.empty()) lost_ = why;
    return;
  }
  // Other ranks may have failed because of the loss, and been noted before it.
  const bool first = !has_cause() || (first_failed_ && may_follow_another(*first_failed_));
  if (!first || stage_ == Stage::stopping) return;
  lost_ = why;
  first_failed_.reset();
  if (!started)
    stop(SIGTERM, {});
  else if (stage_ == Stage::running)
    linger();
}

void EndPolicy::give_up(std::string why) {
  if (stage_ != Stage::running) return;
  lack_ = std::move(why);
  linger();
}

void EndPolicy::linger() {
  stage_ = Stage::lingering;
  linger_timer_ = loop_.after(options_.linger, [this] { stop(SIGTERM, options_.grace); });
}

void EndPolicy::on_signal(int signal_number) {
  if (signal_number != SIGINT && signal_number != SIGTERM) {
    if (signal_number == SIGHUP || signal_number == SIGQUIT) hang_up_ = signal_number;
    return actions_.send(signal_number);
  }
  if (signal_number == SIGINT) ++interrupts_;
  // In an elastic job a failure, or a loss, ends nothing as long as it runs.
  const bool goes_on = options_.elastic && stage_ == Stage::running;
  if (!has_cause() || goes_on) stop_signal_ = signal_number;
  stop(signal_number, interrupts_ > 1 ? Duration{} : options_.grace);
}

bool EndPolicy::ended_by_hang_up(const RankExit& exit) const {
  return hang_up_ && (exit.signal == hang_up_ || exit.code == 128 + *hang_up_);
}

void EndPolicy::fail(int exit_code, std::string text) {
  if (!has_cause()) {
    error_code_ = exit_code;
    error_ = std::move(text);
  }
  stop(SIGTERM, options_.grace);
}

void EndPolicy::stop(int signal_number, Duration grace) {
  stage_ = Stage::stopping;
  loop_.cancel(linger_timer_);
  actions_.stop(signal_number, grace);
}

int EndPolicy::failure_code() const {
  if (!first_failed_) return 1;
  return first_failed_->signal ? 128 + *first_failed_->signal : first_failed_->code.value_or(1);
}

JobResult EndPolicy::make_result(std::vector<RankExit> ranks) const {
  JobResult result;
  result.ranks = std::move(ranks);
  if (first_failed_) result.first_failed = first_failed_->rank;
  const bool succeeded =
      !result.ranks.empty() && std::all_of(result.ranks.begin(), result.ranks.end(), [](const RankExit& rank) { return rank.succeeded(); });
  const bool some_succeeded = std::any_of(result.ranks.begin(), result.ranks.end(), [](const RankExit& rank) { return rank.succeeded(); });
  if (!error_.empty()) {
    result.exit_code = error_code_;
    result.error = error_;
  } else if (!lack_.empty()) {
    result.exit_code = failure_code();
    result.message = lack_ + (lost_.empty() ? "" : "; " + lost_) + ": " + describe_failed(result.ranks);
  } else if (options_.elastic && some_succeeded && stage_ == Stage::running) {
    const std::string again = describe_restarts(result.ranks);
    if (!succeeded)
      result.message = describe_survival(result.ranks) + again;
    else if (!again.empty())
      result.message = "all ranks went on to the end" + again;
    result.first_failed.reset();
  } else if (stop_signal_) {
    result.exit_code = succeeded ? 0 : 128 + *stop_signal_;
    result.message = "got " + signal_name(*stop_signal_) + describe_stopped(result.ranks);
  } else if (!lost_.empty()) {
    result.exit_code = 1;
    const std::string lost = list_ranks(result.ranks, [](const RankExit& rank) { return rank.lost; });
    result.message = lost_ + (lost.empty() ? "" : "; to be ended where they run: " + lost) + describe_stopped(result.ranks);
  } else if (first_failed_) {
    result.exit_code = failure_code();
    result.message = describe_failure(result.ranks, first_failed_->rank) + describe_restarts(result.ranks);
  }
  for (const RankExit& rank : result.ranks) {
    if (rank.pid != 0 && !rank.ended() && !rank.lost)
      result.message += fmt::format("; rank {} (pid {}) did not end even when killed", rank.rank, rank.pid);
    if (rank.lost && error_.empty() && lost_.empty())
      result.message += fmt::format("; rank {} on {} was lost with its machine", rank.rank, rank.machine);
  }
  return result;
}

}  // namespace ringlet::job
