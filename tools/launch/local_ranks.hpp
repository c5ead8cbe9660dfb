#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tools/launch/coordinator_socket.hpp"
#include "tools/launch/guard.hpp"
#include "tools/launch/launch_options.hpp"
#include "tools/launch/rank_process.hpp"
#include "tools/launch/uv_handles.hpp"

namespace ringlet::launch {

/// The ranks that this process starts, until none of their processes is left. What is to follow from a rank's end is its user's business.
class LocalRanks {
 public:
  /// All are called on the loop thread.
  struct Events {
    /// Gets the read ends of the rank's stdout and stderr.
    std::function<void(int rank, RankProcess::Pipes pipes)> on_started;
    /// Once for each, in the order of their deaths where the system tells; errno where it could not become the program.
    std::function<void(const RankExit& exit, std::optional<int> exec_error)> on_exit;
    /// No process of the rank is left: its pipes end after what they hold.
    std::function<void(int rank)> on_gone;
    /// `over()` may have changed.
    std::function<void()> on_change;
    std::function<void()> on_guard_lost;
  };

  /// Starts the guard; throws `LaunchError`. `options` are borrowed.
  LocalRanks(uv_loop_t* loop, const LaunchOptions& options, Events events);

  /// Starts all that are to run here; throws `LaunchError`, and those that run already then still want to be stopped. `stdin_fd` is what
  /// the rank of `options.stdin_rank` inherits.
  void start(const CoordinatorSocket& coordinator, std::vector<InheritedFd> inherited_by_rank_0, int stdin_fd);

  void send(int signal_number);
  void stop(int signal_number, std::chrono::milliseconds grace);
  /// No process is left, and all exits are told.
  bool over() const;
  std::vector<RankExit> exits() const;
  /// Lets the guard go; to be called once `over()`.
  void dismiss_guard(std::function<void()> on_gone) { guard_.dismiss(std::move(on_gone)); }

 private:
  struct Seat {
    explicit Seat(uv_loop_t* loop, int rank) : process(loop, rank) {}
    RankProcess process;
    bool noted = false;      // its exit has been told
    bool forgotten = false;  // the guard and the user know that no process is left
  };

  void note_deaths();
  void note_exit(Seat& seat);
  void sweep();
  std::optional<int> read_exec_error();

  uv_loop_t* loop_;
  const LaunchOptions& options_;
  Events events_;
  Guard guard_;
  UniqueFd failures_;  // where helpers report that they cannot become the program
  std::vector<std::unique_ptr<Seat>> seats_;
  std::deque<Seat*> deaths_;  // those whose exit is not yet told, first death first
  UvTimer sweep_timer_;
  bool stopping_ = false;
};

}  // namespace ringlet::launch
