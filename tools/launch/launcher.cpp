#include "tools/launch/launcher.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <string>

#include "tools/launch/coordinator_socket.hpp"
#include "tools/launch/launch_error.hpp"

namespace ringlet::launch {

Launcher::Launcher(LaunchOptions options) : options_(std::move(options)) {}

LaunchResult Launcher::run() {
  if (const auto mistake = find_mistake(options_)) {
    LaunchResult result;
    result.exit_code = 2;
    result.error = *mistake;
    return result;
  }
  ::signal(SIGPIPE, SIG_IGN);
  course_.emplace(loop_.get(), options_, make_actions());
  try {
    start();
  } catch (const LaunchError& error) {
    course_->fail(error.exit_code(), error.what());
    course_->stop(SIGTERM, {});
  }
  finish_if_over();
  while (!finished_) uv_run(loop_.get(), UV_RUN_ONCE);
  return course_->make_result(ranks_ ? ranks_->exits() : std::vector<RankExit>());
}

void Launcher::start() {
  output_.emplace(loop_.get(), options_, [this](int error) { course_->on_output_lost(error); }, [this] { finish_if_over(); });
  ranks_.emplace(loop_.get(), options_, make_events());
  const CoordinatorSocket coordinator = open_coordinator_socket(options_.listen_at);
  if (options_.on_listening) options_.on_listening(coordinator.port);
  const UniqueFd presence_writer = options_.guests > 0 ? watch_guests() : UniqueFd();
  std::vector<InheritedFd> inherited{{"RINGLET_COORDINATOR_FD", coordinator.socket.get()}};
  if (options_.page_fd) inherited.push_back({"RINGLET_PAGE_FD", *options_.page_fd});
  if (presence_writer) inherited.push_back({"RINGLET_PRESENCE_FD", presence_writer.get()});
  ranks_->start(coordinator, std::move(inherited), STDIN_FILENO);
}

Course::Actions Launcher::make_actions() {
  Course::Actions actions;
  actions.stop = [this](int signal_number, std::chrono::milliseconds grace) {
    if (ranks_) ranks_->stop(signal_number, grace);
  };
  actions.send = [this](int signal_number) {
    if (ranks_) ranks_->send(signal_number);
  };
  // Nothing runs any more: only a reader that takes no output can have kept the launcher.
  actions.give_up_output = [this] {
    if (ranks_over() && output_) output_->discard();
  };
  return actions;
}

LocalRanks::Events Launcher::make_events() {
  LocalRanks::Events events;
  events.on_started = [this](int rank, RankProcess::Pipes pipes) { output_->attach(rank, std::move(pipes.out), std::move(pipes.err)); };
  events.on_exit = [this](const RankExit& exit, std::optional<int> exec_error) { course_->note_exit(exit, exec_error); };
  events.on_gone = [this](int rank) { output_->end_rank(rank); };
  events.on_change = [this] { finish_if_over(); };
  events.on_guard_lost = [this] {
    output_->say("the guard process was ended; should the launcher be killed now, processes of the ranks can stay behind");
  };
  return events;
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

void Launcher::finish_if_over() {
  if (finishing_ || !ranks_over() || (output_ && !output_->finished())) return;
  finishing_ = true;
  course_->finish();
  if (ranks_)
    ranks_->dismiss_guard([this] { finished_ = true; });
  else
    finished_ = true;
}

}  // namespace ringlet::launch
