#include "tools/launch/local_crew.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tools/launch/coordinator_socket.hpp"
#include "tools/launch/internal_commands.hpp"
#include "tools/launch/launch_error.hpp"
#include "tools/launch/pipe.hpp"
#include "tools/launch/platform.hpp"
#include "tools/launch/rank_environment.hpp"
#include "transport/uv/socket.hpp"

namespace ringlet::launch {

namespace {

constexpr Duration kSweepInterval = Duration::milliseconds(10);
/// How many ports are tried until the one of torch's store, beside it, is free, too.
constexpr int kTries = 16;

RankProcess::Clock::time_point time_after(Duration grace) {
  return RankProcess::Clock::now() + std::chrono::milliseconds(grace.whole_milliseconds());
}

}  // namespace

LocalCrew::LocalCrew(UvLoop& loop, CrewSettings settings, job::CrewEvents events)
    : loop_(loop),
      settings_(std::move(settings)),
      events_(std::move(events)),
      traces_([this](job::TracePiece piece) { later([this, piece = std::move(piece)]() mutable { events_.on_trace(std::move(piece)); }); }),
      stopped_(loop, events_.on_notice) {}

LocalCrew::~LocalCrew() {
  loop_.cancel(sweep_timer_);
  send(SIGKILL);
}

/// libuv's callbacks stand outside the loop's turns, and must not find their own handle destroyed.
void LocalCrew::later(std::function<void()> task) { loop_.defer(alive_.wrap(std::move(task))); }

Result<std::uint16_t> LocalCrew::open_coordinator(const job::BindPort& asked) {
  job::BindPort where = asked;
  if (where.port == 0 && !settings_.ports.any() && !is_loopback({where.host, 0})) {
    where.port = settings_.ports.first;
    where.last_port = settings_.ports.last;
  }
  for (int tries = where.port == 0 ? kTries : 1;; --tries) {
    auto socket = open_coordinator_socket(where);
    if (!socket.ok()) return socket.status();
    const std::uint16_t port = uv::to_address(uv::local_address(socket.value().get())).port;
    store_port_ = hold_port({where.host, store_port(port)});
    if (!store_port_ && tries > 1) continue;
    coordinator_ = std::move(socket).value();
    return port;
  }
}

Result<std::vector<std::uint32_t>> LocalCrew::start(const job::StartRanks& start) {
  started_ = true;
  start_ = start;
  return start_or_stop([this] { start_ranks(); });
}

/// Returns the ids of the processes that `start` has started.
Result<std::vector<std::uint32_t>> LocalCrew::start_or_stop(const std::function<void()>& start) {
  const std::size_t before = seats_.size();
  try {
    start();
  } catch (const LaunchError& error) {
    stop(SIGTERM, {});
    return Status(Errc::io_error, error.what());
  }
  std::vector<std::uint32_t> pids;
  for (std::size_t i = before; i < seats_.size(); ++i) pids.push_back(static_cast<std::uint32_t>(seats_[i]->process.exit().pid));
  return pids;
}

Result<std::vector<std::uint32_t>> LocalCrew::restart(const job::RestartRanks& restart) {
  seats_.erase(std::remove_if(seats_.begin(), seats_.end(), [](const auto& seat) { return is_over(*seat); }), seats_.end());
  job::StartRanks again = start_;
  if (restart.join.empty()) {
    again.world_size = restart.world_size;
    again.coordinator = restart.coordinator;
    again.first_rank = restart.first_rank;
    again.ranks = static_cast<std::uint32_t>(restart.ranks.size());
  }
  return start_or_stop([&] {
    RankStart start{again, settings_, failure_reports_.get(), guard_->registration_fd(), {}};
    if (coordinator_) start.inherited_by_rank_0.push_back({"RINGLET_COORDINATOR_FD", coordinator_.get()});
    // Another process has read a part of what came through a pipe.
    start.stdin_fd = settings_.inherits_stdin ? STDIN_FILENO : -1;
    start.join = restart.join;
    for (std::size_t i = 0; i < restart.ranks.size(); ++i) {
      const int rank = static_cast<int>(restart.ranks[i]);
      start.restarts = starts_[rank];
      start.number = restart.join.empty() ? static_cast<int>(restart.first_rank + i) : rank;
      start_rank(start, rank);
    }
    coordinator_.reset();
  });
}

void LocalCrew::start_ranks() {
  adopt_orphans();
  guard_.emplace(loop_.uv(), settings_.helper_path, [this] {
    later([this] {
      events_.on_notice("the guard process was ended; should its starter be killed now, processes of the ranks can stay behind");
    });
  });
  child_signals_.emplace(loop_.uv(), SIGCHLD, [this](int) {
    reap_adopted();
    later([this] { note_stops(); });
  });
  PipeEnds failures = open_pipe(UV_NONBLOCK_PIPE, 0);
  failures_ = std::move(failures.read_end);
  failure_reports_ = std::move(failures.write_end);
  PipeEnds input;
  if (start_.has_input && !settings_.inherits_stdin) {
    input = open_pipe(0, UV_NONBLOCK_PIPE);
    input_writer_ = std::move(input.write_end);
    input_.emplace(loop_.uv(), input_writer_.get());
    input_->on_drained = [this] { later(events_.on_input_taken); };
  }
  RankStart start{start_, settings_, failure_reports_.get(), guard_->registration_fd(), settings_.inherited};
  if (coordinator_) start.inherited_by_rank_0.push_back({"RINGLET_COORDINATOR_FD", coordinator_.get()});
  start.stdin_fd = settings_.inherits_stdin ? STDIN_FILENO : input.read_end.get();
  for (std::uint32_t i = 0; i < start_.ranks && !start_.waits; ++i) {
    start.number = static_cast<int>(start_.first_rank + i);
    start_rank(start, start.number);
  }
  // From here on rank 0 alone listens.
  coordinator_.reset();
}

void LocalCrew::start_rank(RankStart start, int rank) {
  ++starts_[rank];
  Seat& seat = *seats_.emplace_back(std::make_unique<Seat>(loop_.uv(), rank, start.restarts));
  if (start_.trace) {
    start.trace_fd = traces_.open(rank, start.restarts);
    if (start.trace_fd < 0)
      later([this, text = fmt::format("rank {} keeps no trace, since no file can be made for it: {}; TMPDIR names another folder for it",
                                      rank, std::strerror(errno))] { events_.on_notice(text); });
  }
  const auto on_dead = [this, &seat] {
    deaths_.push_back(&seat);
    later([this] { note_deaths(); });
  };
  auto [out, err, memberships] = seat.process.start(start, on_dead, [this] { later([this] { note_deaths(); }); });
  seat.readers = {read(rank, false, std::move(out)), read(rank, true, std::move(err))};
  if (memberships) watch_membership(seat, std::move(memberships));
}

void LocalCrew::watch_membership(Seat& seat, UniqueFd fd) {
  const auto on_bytes = [this, &seat, rank = seat.process.exit().rank](std::string_view bytes) {
    for (job::Membership& membership : seat.lines.feed(bytes)) {
      // A program may make its group elastic where its job is not.
      if (!start_.elastic) continue;
      membership.rank = static_cast<std::uint32_t>(rank);
      later([this, membership] { events_.on_membership(membership); });
    }
  };
  seat.memberships = std::make_unique<PipeReader>(loop_.uv(), std::move(fd), on_bytes, [this] { later([this] { finish_if_over(); }); });
}

std::unique_ptr<PipeReader> LocalCrew::read(int rank, bool error, UniqueFd fd) {
  const auto tell = [this, rank, error](std::string_view bytes) {
    later([this, output = job::Output{static_cast<std::uint32_t>(rank), error, std::string(bytes)}] { events_.on_output(output); });
  };
  const auto on_end = [this, tell] {
    tell({});
    later([this] { finish_if_over(); });
  };
  auto reader = std::make_unique<PipeReader>(loop_.uv(), std::move(fd), tell, on_end);
  if (held_[error ? 1 : 0]) reader->pause();
  return reader;
}

void LocalCrew::note_stops() {
  for (const auto& seat : seats_) {
    RankProcess& process = seat->process;
    if (!process.running() || process.stopping())
      stopped_.forget(process.exit());
    else if (const auto signal_number = process.find_stop())
      stopped_.note_stop(process.exit(), *signal_number);
    else
      stopped_.note_continuation(process.exit());
  }
}

void LocalCrew::note_deaths() {
  while (!deaths_.empty() && deaths_.front()->process.reaped()) {
    Seat& seat = *deaths_.front();
    deaths_.pop_front();
    note_exit(seat);
  }
}

void LocalCrew::note_exit(Seat& seat) {
  seat.noted = true;
  const job::RankExit& exit = seat.process.exit();
  stopped_.forget(exit);
  if (seat.memberships) seat.memberships->read_present_bytes();
  const auto lost = start_.elastic ? std::nullopt : seat.lines.lost();
  events_.on_exit({static_cast<std::uint32_t>(exit.rank), static_cast<std::uint32_t>(exit.code.value_or(0)),
                   static_cast<std::uint32_t>(exit.signal.value_or(0)), exit.stopped, exit.succeeded() ? 0 : read_exec_error(),
                   lost ? *lost + 1 : 0});
  // The processes that the rank started and left behind end with it.
  seat.process.check(RankProcess::Clock::now());
  seat.process.stop(SIGTERM, time_after(Duration::milliseconds(start_.grace_ms)));
  sweep();
}

std::uint32_t LocalCrew::read_exec_error() {
  ExecError failure{};
  return ::read(failures_.get(), &failure, sizeof failure) == sizeof failure ? static_cast<std::uint32_t>(failure) : 0;
}

void LocalCrew::send(int signal_number) {
  for (const auto& seat : seats_) seat->process.send(signal_number);
}

void LocalCrew::stop(int signal_number, Duration grace) {
  stopping_ = true;
  for (const auto& seat : seats_) seat->process.stop(signal_number, time_after(grace));
  sweep();
}

void LocalCrew::stop_ranks(const std::vector<std::uint32_t>& ranks, int signal_number, Duration grace) {
  for (const auto& seat : seats_)
    if (std::find(ranks.begin(), ranks.end(), static_cast<std::uint32_t>(seat->process.exit().rank)) != ranks.end())
      seat->process.stop(signal_number, time_after(grace));
  sweep();
}

void LocalCrew::sweep() {
  const auto now = RankProcess::Clock::now();
  bool waiting = false;
  for (const auto& seat : seats_) {
    RankProcess& process = seat->process;
    process.check(now);
    const bool gone = process.gone() || process.unkillable();
    if (gone && !seat->forgotten && process.started()) {
      seat->forgotten = true;
      guard_->forget(process.exit().pid);
      traces_.send(process.exit().rank, seat->restarts);
      for (const auto& reader : seat->readers)
        if (reader) reader->end_after_present_bytes();
      if (seat->memberships) seat->memberships->end_after_present_bytes();
    }
    waiting = waiting || (!gone && (stopping_ || process.stopping() || process.reaped()));
  }
  loop_.cancel(sweep_timer_);
  if (waiting) sweep_timer_ = loop_.after(kSweepInterval, [this] { sweep(); });
  later([this] { finish_if_over(); });
}

void LocalCrew::hold_output(bool error, bool held) {
  if (std::exchange(held_[error ? 1 : 0], held) == held) return;
  for (const auto& seat : seats_) {
    const auto& reader = seat->readers[error ? 1 : 0];
    if (reader && held) reader->pause();
    if (reader && !held) reader->resume();
  }
}

void LocalCrew::write_input(std::string_view bytes) {
  if (!input_) return;
  if (!bytes.empty()) return input_->write(bytes);
  input_.reset();
  input_writer_.reset();
}

void LocalCrew::take_trace() {
  traces_.take();
  later([this] { finish_if_over(); });
}

void LocalCrew::drop_traces() {
  traces_.drop();
  later([this] { finish_if_over(); });
}

bool LocalCrew::is_over(const Seat& seat) {
  const RankProcess& process = seat.process;
  const auto read = [](const auto& reader) { return !reader || reader->ended(); };
  return (!process.started() || process.unkillable() || (process.gone() && seat.noted)) &&
         std::all_of(seat.readers.begin(), seat.readers.end(), read) && read(seat.memberships);
}

void LocalCrew::finish_if_over() {
  if (!started_ || over_ || (start_.elastic && !stopping_)) return;
  if (!std::all_of(seats_.begin(), seats_.end(), [](const auto& seat) { return is_over(*seat); }) || !traces_.idle()) return;
  over_ = true;
  if (guard_)
    guard_->dismiss([this] { later(events_.on_over); });
  else
    later(events_.on_over);
}

}  // namespace ringlet::launch
