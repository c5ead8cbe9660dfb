#include "tools/launch/local_ranks.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tools/launch/internal_commands.hpp"
#include "tools/launch/pipe.hpp"
#include "tools/launch/platform.hpp"

namespace ringlet::launch {

namespace {

constexpr std::chrono::milliseconds kSweepInterval{10};

}  // namespace

LocalRanks::LocalRanks(uv_loop_t* loop, const LaunchOptions& options, Events events)
    : loop_(loop),
      options_(options),
      events_(std::move(events)),
      guard_(loop, options.helper_path, [this] { events_.on_guard_lost(); }),
      sweep_timer_(loop) {
  adopt_orphans();
}

void LocalRanks::start(const CoordinatorSocket& coordinator, std::vector<InheritedFd> inherited_by_rank_0, int stdin_fd) {
  Pipe failures = open_pipe(UV_NONBLOCK_PIPE, 0);
  failures_ = std::move(failures.read_end);
  const UniqueFd failure_writer = std::move(failures.write_end);
  const RankStart start{options_, failure_writer.get(), guard_.registration_fd(), coordinator, std::move(inherited_by_rank_0), stdin_fd};
  const int count = options_.ranks_here.value_or(options_.world_size);
  for (int rank = options_.first_rank; rank < options_.first_rank + count; ++rank) {
    Seat& seat = *seats_.emplace_back(std::make_unique<Seat>(loop_, rank));
    const auto on_dead = [this, &seat] {
      deaths_.push_back(&seat);
      note_deaths();
    };
    events_.on_started(rank, seat.process.start(start, on_dead, [this] { note_deaths(); }));
  }
}

void LocalRanks::note_deaths() {
  while (!deaths_.empty() && deaths_.front()->process.reaped()) {
    Seat& seat = *deaths_.front();
    deaths_.pop_front();
    note_exit(seat);
  }
}

void LocalRanks::note_exit(Seat& seat) {
  seat.noted = true;
  const RankExit& exit = seat.process.exit();
  events_.on_exit(exit, exit.succeeded() ? std::nullopt : read_exec_error());
  // What the rank started and left behind ends with it.
  seat.process.check(RankProcess::Clock::now());
  seat.process.stop(SIGTERM, RankProcess::Clock::now() + options_.grace);
  sweep();
}

std::optional<int> LocalRanks::read_exec_error() {
  ExecFailure failure{};
  if (::read(failures_.get(), &failure, sizeof failure) != sizeof failure) return std::nullopt;
  return failure.error;
}

void LocalRanks::send(int signal_number) {
  for (const auto& seat : seats_) seat->process.send(signal_number);
}

void LocalRanks::stop(int signal_number, std::chrono::milliseconds grace) {
  stopping_ = true;
  for (const auto& seat : seats_) seat->process.stop(signal_number, RankProcess::Clock::now() + grace);
  sweep();
}

void LocalRanks::sweep() {
  const auto now = RankProcess::Clock::now();
  bool waiting = false;
  for (const auto& seat : seats_) {
    RankProcess& process = seat->process;
    process.check(now);
    const bool gone = process.gone() || process.unkillable();
    if (gone && !seat->forgotten && process.started()) {
      seat->forgotten = true;
      guard_.forget(process.exit().pid);
      events_.on_gone(process.exit().rank);
    }
    waiting = waiting || (!gone && (stopping_ || process.reaped()));
  }
  if (!waiting)
    sweep_timer_.stop();
  else if (!sweep_timer_.active())
    sweep_timer_.start(kSweepInterval, [this] { sweep(); }, kSweepInterval);
  events_.on_change();
}

bool LocalRanks::over() const {
  return std::all_of(seats_.begin(), seats_.end(), [](const auto& seat) {
    return !seat->process.started() || seat->process.unkillable() || (seat->process.gone() && seat->noted);
  });
}

std::vector<RankExit> LocalRanks::exits() const {
  std::vector<RankExit> exits;
  for (const auto& seat : seats_) exits.push_back(seat->process.exit());
  return exits;
}

}  // namespace ringlet::launch
