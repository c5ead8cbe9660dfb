#include "tools/agent/local_crew.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/launch/launch_error.hpp"

namespace ringlet::agent {

namespace {

launch::LaunchOptions launch_options(const Start& start, const std::string& helper_path) {
  launch::LaunchOptions options;
  options.world_size = static_cast<int>(start.world_size);
  options.first_rank = static_cast<int>(start.first_rank);
  options.ranks_here = static_cast<int>(start.ranks);
  options.command = {start.program};
  options.command.insert(options.command.end(), start.arguments.begin(), start.arguments.end());
  options.environment.emplace_back("RINGLET_TOKEN", start.token);
  for (const Variable& variable : start.environment) options.environment.emplace_back(variable.name, variable.value);
  if (!start.directory.empty()) options.working_directory = start.directory;
  if (start.terminal_columns > 0) options.terminal_columns = static_cast<int>(start.terminal_columns);
  options.prefix = false;
  options.helper_path = helper_path;
  return options;
}

}  // namespace

LocalCrew::LocalCrew(EventLoop& loop, uv_loop_t* uv, std::string helper_path, CrewEvents events)
    : loop_(loop), uv_(uv), helper_path_(std::move(helper_path)), events_(std::move(events)), alive_(std::make_shared<bool>(true)) {}

LocalCrew::~LocalCrew() {
  *alive_ = false;
  if (ranks_) ranks_->send(SIGKILL);
}

/// libuv's callbacks stand outside the loop's turns, and must not find their own handle destroyed.
void LocalCrew::later(std::function<void()> task) {
  loop_.defer([alive = alive_, task = std::move(task)] {
    if (*alive) task();
  });
}

Result<std::uint16_t> LocalCrew::open_coordinator(const std::string& host) {
  try {
    coordinator_ = launch::open_coordinator_socket({host, 0});
    return static_cast<std::uint16_t>(coordinator_.port);
  } catch (const launch::LaunchError& error) {
    return Status(Errc::io_error, error.what());
  }
}

Result<std::vector<std::uint32_t>> LocalCrew::start(const Start& start) {
  started_ = true;
  options_ = launch_options(start, helper_path_);
  coordinator_.address = start.coordinator;
  try {
    start_ranks();
  } catch (const launch::LaunchError& error) {
    stop(SIGTERM, {});
    return Status(Errc::io_error, error.what());
  }
  std::vector<std::uint32_t> pids;
  for (const launch::RankExit& rank : ranks_->exits()) pids.push_back(static_cast<std::uint32_t>(rank.pid));
  return pids;
}

void LocalCrew::start_ranks() {
  launch::LocalRanks::Events events;
  events.on_started = [this](int rank, launch::RankProcess::Pipes pipes) {
    read(rank, std::move(pipes.out), false);
    read(rank, std::move(pipes.err), true);
  };
  events.on_exit = [this](const launch::RankExit& exit, std::optional<int> exec_error) {
    later([this, exit, exec_error] { tell_exit(exit, exec_error); });
  };
  events.on_gone = [this](int rank) {
    for (const Source& source : sources_)
      if (source.rank == rank) source.reader->end_after_present_bytes();
  };
  events.on_change = [this] { later([this] { finish_if_over(); }); };
  // The ranks go on without it, as under `ringlet launch`; only this agent's own death is then not followed by theirs.
  events.on_guard_lost = [] {};
  ranks_.emplace(uv_, options_, std::move(events));
  std::vector<launch::InheritedFd> inherited;
  if (coordinator_.socket) inherited.push_back({"RINGLET_COORDINATOR_FD", coordinator_.socket.get()});
  ranks_->start(coordinator_, std::move(inherited), STDIN_FILENO);
  // From here on rank 0 alone listens.
  coordinator_.socket.reset();
}

void LocalCrew::read(int rank, launch::UniqueFd fd, bool error) {
  const auto on_bytes = [this, rank, error](std::string_view bytes) {
    later([this, output = Output{static_cast<std::uint32_t>(rank), error, std::string(bytes)}] { events_.on_output(output); });
  };
  auto reader = std::make_unique<launch::PipeReader>(uv_, std::move(fd), on_bytes, [this] { later([this] { finish_if_over(); }); });
  if (held_) reader->pause();
  sources_.push_back({rank, std::move(reader)});
}

void LocalCrew::tell_exit(const launch::RankExit& exit, std::optional<int> exec_error) {
  if (exec_error) {
    const bool missing = *exec_error == ENOENT || *exec_error == ENOTDIR;
    events_.on_failed(
        Failed{missing ? 127u : 126u, fmt::format("cannot run '{}': {}{}", options_.command.front(), std::strerror(*exec_error),
                                                  missing ? "; a script's first line must name a program that is there" : "")});
  }
  events_.on_exit(Exit{static_cast<std::uint32_t>(exit.rank), static_cast<std::uint32_t>(exit.code.value_or(0)),
                       static_cast<std::uint32_t>(exit.signal.value_or(0)), exit.stopped});
}

void LocalCrew::send(int signal_number) {
  if (ranks_) ranks_->send(signal_number);
}

void LocalCrew::stop(int signal_number, Duration grace) {
  if (ranks_) ranks_->stop(signal_number, std::chrono::milliseconds(grace.whole_milliseconds()));
  later([this] { finish_if_over(); });
}

void LocalCrew::hold_output(bool held) {
  if (std::exchange(held_, held) == held) return;
  for (const Source& source : sources_) {
    if (held)
      source.reader->pause();
    else
      source.reader->resume();
  }
}

void LocalCrew::finish_if_over() {
  const auto ended = [](const Source& source) { return source.reader->ended(); };
  if (!started_ || over_ || (ranks_ && !ranks_->over()) || !std::all_of(sources_.begin(), sources_.end(), ended)) return;
  over_ = true;
  if (ranks_)
    ranks_->dismiss_guard([this] { later(events_.on_over); });
  else
    later(events_.on_over);
}

}  // namespace ringlet::agent
