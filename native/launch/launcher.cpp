#include "native/launch/launcher.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "native/launch/coordinator_socket.hpp"
#include "native/launch/internal_commands.hpp"
#include "native/launch/launch_error.hpp"
#include "native/launch/launch_report.hpp"
#include "native/launch/platform.hpp"

namespace ringlet::launch {

namespace {

constexpr std::chrono::milliseconds kSweepInterval{10};

bool is_ignored(int signal_number) {
  struct sigaction action {};
  return ::sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Launcher::Launcher(LaunchOptions options) : options_(std::move(options)) {}

LaunchResult Launcher::run() {
  if (const auto mistake = find_mistake(options_)) {
    LaunchResult result;
    result.exit_code = 2;
    result.error = *mistake;
    return result;
  }
  try {
    start();
  } catch (const LaunchError& error) {
    fail(error.exit_code(), error.what());
    stop_ranks(SIGTERM, {});
  }
  finish_if_over();
  while (!finished_) uv_run(loop_.get(), UV_RUN_ONCE);
  return make_result();
}

void Launcher::start() {
  ::signal(SIGPIPE, SIG_IGN);
  adopt_orphans();
  watch_signals();
  output_.emplace(
      loop_.get(), options_, [this](int error) { on_output_lost(error); }, [this] { finish_if_over(); });
  guard_.emplace(loop_.get(), options_.helper_path, [this] {
    output_->say("the guard process was ended; should the launcher be killed now, processes of the ranks can stay behind");
  });
  const CoordinatorSocket coordinator = open_coordinator_socket(options_.listen_at);
  if (options_.on_listening) options_.on_listening(coordinator.port);
  std::array<uv_file, 2> ends{};
  if (const int error = uv_pipe(ends.data(), UV_NONBLOCK_PIPE, 0); error != 0)
    throw LaunchError(1, std::string("cannot open a pipe: ") + uv_strerror(error));
  failures_.reset(ends[0]);
  const UniqueFd failure_writer(ends[1]);
  const UniqueFd presence_writer = options_.guests > 0 ? watch_guests() : UniqueFd();
  RankStart start{options_, failure_writer.get(), guard_->registration_fd(), coordinator, {}};
  start.inherited_by_rank_0.push_back({"RINGLET_COORDINATOR_FD", coordinator.socket.get()});
  if (options_.page_fd) start.inherited_by_rank_0.push_back({"RINGLET_PAGE_FD", *options_.page_fd});
  if (presence_writer) start.inherited_by_rank_0.push_back({"RINGLET_PRESENCE_FD", presence_writer.get()});
  for (int rank = 0; rank < options_.world_size; ++rank) start_rank(rank, start);
}

/// The end that rank 0 inherits.
UniqueFd Launcher::watch_guests() {
  std::array<uv_os_sock_t, 2> ends{};
  if (const int error = uv_socketpair(SOCK_STREAM, 0, ends.data(), UV_NONBLOCK_PIPE, 0); error != 0)
    throw LaunchError(1, std::string("cannot open a pair of sockets: ") + uv_strerror(error));
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const auto on_bytes = [this](std::string_view bytes) {
    for (const std::string& sentence : guests_->feed(bytes)) output_->say(sentence);
  };
  guests_.emplace(options_.guests);
  presence_.emplace(loop_.get(), std::move(reader), on_bytes, [] {});
  return writer;
}

void Launcher::start_rank(int rank, const RankStart& start) {
  progress_.emplace_back();
  RankProcess& process = *ranks_.emplace_back(std::make_unique<RankProcess>(loop_.get(), rank));
  const auto on_dead = [this, rank] {
    deaths_.push_back(rank);
    note_deaths();
  };
  RankProcess::Pipes pipes = process.start(start, on_dead, [this] { note_deaths(); });
  output_->attach(rank, std::move(pipes.out), std::move(pipes.err));
}

void Launcher::watch_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    // Who started the launcher with nohup or in the background wants it to outlive these.
    if ((number == SIGHUP || number == SIGINT || number == SIGQUIT) && is_ignored(number)) continue;
    signals_.push_back(std::make_unique<UvSignal>(loop_.get(), number, [this](int received) { on_signal(received); }));
  }
}

void Launcher::note_deaths() {
  while (!deaths_.empty() && ranks_[static_cast<std::size_t>(deaths_.front())]->reaped()) {
    RankProcess& rank = *ranks_[static_cast<std::size_t>(deaths_.front())];
    deaths_.pop_front();
    note_exit(rank);
  }
}

void Launcher::note_exit(RankProcess& rank) {
  progress_[static_cast<std::size_t>(rank.exit().rank)].noted = true;
  if (!rank.exit().succeeded() && stage_ == Stage::running) note_failure(rank.exit().rank);
  if (stage_ == Stage::lingering && was_killed_first(rank.exit())) first_failed_ = rank.exit().rank;
  // What the rank started and left behind ends with it.
  rank.check(RankProcess::Clock::now());
  rank.stop(SIGTERM, RankProcess::Clock::now() + options_.grace);
  sweep();
}

void Launcher::note_failure(int rank) {
  if (const std::optional<int> error = read_exec_error()) {
    const bool missing = *error == ENOENT;
    fail(missing || *error == ENOTDIR ? 127 : 126,
         fmt::format("cannot run '{}': {}{}", options_.command.front(), std::strerror(*error),
                     missing ? "; name a program in PATH or give its path (a script's first line must name one too)" : ""));
    stop_ranks(SIGTERM, options_.grace);
    return;
  }
  first_failed_ = rank;
  stage_ = Stage::lingering;
  linger_timer_.start(options_.linger, [this] { stop_ranks(SIGTERM, options_.grace); });
}

/// A dying process closes its connections before the kernel tells of its death, so a peer may have noticed, exited and been noted before
/// it. Nobody dies of SIGKILL because a peer did: that rank came first.
bool Launcher::was_killed_first(const RankExit& exit) const {
  return exit.signal == SIGKILL && !exit.stopped && ranks_[static_cast<std::size_t>(*first_failed_)]->exit().code.has_value();
}

std::optional<int> Launcher::read_exec_error() {
  ExecFailure failure{};
  if (::read(failures_.get(), &failure, sizeof failure) != sizeof failure) return std::nullopt;
  return failure.error;
}

void Launcher::on_signal(int signal_number) {
  if (signal_number != SIGINT && signal_number != SIGTERM) {
    for (const auto& rank : ranks_) rank->send(signal_number);
    return;
  }
  if (signal_number == SIGINT) ++interrupts_;
  if (error_.empty() && !first_failed_ && !stop_signal_) stop_signal_ = signal_number;
  // Nothing runs any more: only a reader that takes no output can have kept the launcher.
  if (ranks_over()) output_->discard();
  stop_ranks(signal_number, interrupts_ > 1 ? std::chrono::milliseconds(0) : options_.grace);
}

void Launcher::on_output_lost(int error) {
  if (error == EPIPE)
    fail(128 + SIGPIPE, "the reader of the ranks' output went away");
  else
    fail(1, fmt::format("cannot write the ranks' output: {}", std::strerror(error)));
  stop_ranks(SIGTERM, options_.grace);
}

void Launcher::fail(int exit_code, std::string text) {
  if (!error_.empty() || first_failed_ || stop_signal_) return;
  error_code_ = exit_code;
  error_ = std::move(text);
}

void Launcher::stop_ranks(int signal_number, std::chrono::milliseconds grace) {
  stage_ = Stage::stopping;
  linger_timer_.stop();
  for (const auto& rank : ranks_) rank->stop(signal_number, RankProcess::Clock::now() + grace);
  sweep();
}

void Launcher::sweep() {
  const auto now = RankProcess::Clock::now();
  bool waiting = false;
  for (const auto& rank : ranks_) {
    rank->check(now);
    const auto index = static_cast<std::size_t>(rank->exit().rank);
    const bool over = rank->gone() || rank->unkillable();
    if (over && !progress_[index].forgotten && rank->started()) {
      progress_[index].forgotten = true;
      guard_->forget(rank->exit().pid);
      output_->end_rank(rank->exit().rank);
    }
    waiting = waiting || (!over && (stage_ == Stage::stopping || rank->reaped()));
  }
  if (!waiting)
    sweep_timer_.stop();
  else if (!sweep_timer_.active())
    sweep_timer_.start(
        kSweepInterval, [this] { sweep(); }, kSweepInterval);
  finish_if_over();
}

bool Launcher::ranks_over() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [this](const auto& rank) {
    return !rank->started() || rank->unkillable() || (rank->gone() && progress_[static_cast<std::size_t>(rank->exit().rank)].noted);
  });
}

void Launcher::finish_if_over() {
  if (finishing_ || !ranks_over() || (output_ && !output_->finished())) return;
  finishing_ = true;
  linger_timer_.stop();
  if (guard_)
    guard_->dismiss([this] { finished_ = true; });
  else
    finished_ = true;
}

LaunchResult Launcher::make_result() const {
  LaunchResult result;
  for (const auto& rank : ranks_) result.ranks.push_back(rank->exit());
  result.first_failed = first_failed_;
  const bool succeeded = std::all_of(result.ranks.begin(), result.ranks.end(), [](const RankExit& rank) { return rank.succeeded(); });
  if (!error_.empty()) {
    result.exit_code = error_code_;
    result.error = error_;
  } else if (first_failed_) {
    const RankExit& first = result.ranks[static_cast<std::size_t>(*first_failed_)];
    result.exit_code = first.signal ? 128 + *first.signal : *first.code;
    result.message = describe_failure(result);
  } else if (stop_signal_) {
    result.exit_code = succeeded ? 0 : 128 + *stop_signal_;
    result.message = "got " + signal_name(*stop_signal_) + describe_stopped(result);
  }
  for (const RankExit& rank : result.ranks)
    if (rank.pid != 0 && !rank.code && !rank.signal)
      result.message += fmt::format("; rank {} (pid {}) did not end even when killed", rank.rank, rank.pid);
  return result;
}

}  // namespace ringlet::launch
