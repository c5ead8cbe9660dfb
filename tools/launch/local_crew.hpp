#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "tools/job/rank_crew.hpp"
#include "tools/launch/guard.hpp"
#include "tools/launch/membership_lines.hpp"
#include "tools/launch/output_stream.hpp"
#include "tools/launch/pipe_reader.hpp"
#include "tools/launch/rank_process.hpp"
#include "tools/launch/rank_traces.hpp"
#include "tools/launch/stopped_ranks.hpp"
#include "tools/launch/uv_handles.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet::launch {

/// The ranks of a job as processes of this machine, with a guard that kills them should this process be killed.
class LocalCrew final : public job::RankCrew {
 public:
  /// `loop` outlives it.
  LocalCrew(UvLoop& loop, CrewSettings settings, job::CrewEvents events);
  ~LocalCrew() override;

  Result<std::uint16_t> open_coordinator(const job::BindPort& asked) override;
  Result<std::vector<std::uint32_t>> start(const job::StartRanks& start) override;
  Result<std::vector<std::uint32_t>> restart(const job::RestartRanks& restart) override;
  void send(int signal_number) override;
  void stop(int signal_number, Duration grace) override;
  void stop_ranks(const std::vector<std::uint32_t>& ranks, int signal_number, Duration grace) override;
  void hold_output(bool error, bool held) override;
  void write_input(std::string_view bytes) override;
  void take_trace() override;
  void drop_traces() override;

 private:
  struct Seat {
    Seat(uv_loop_t* loop, int rank, int times_restarted) : process(loop, rank), restarts(times_restarted) {}
    RankProcess process;
    const int restarts;                                  // of its rank, before this process
    std::array<std::unique_ptr<PipeReader>, 2> readers;  // of stdout and stderr
    std::unique_ptr<PipeReader> memberships;             // what it says of its groups
    MembershipLines lines;
    bool noted = false;      // its exit has been told
    bool forgotten = false;  // the guard knows that no process is left
  };

  Result<std::vector<std::uint32_t>> start_or_stop(const std::function<void()>& start);
  void start_ranks();
  void start_rank(RankStart start, int rank);
  void watch_membership(Seat& seat, UniqueFd fd);
  static bool is_over(const Seat& seat);
  std::unique_ptr<PipeReader> read(int rank, bool error, UniqueFd fd);
  void note_stops();
  void note_deaths();
  void note_exit(Seat& seat);
  std::uint32_t read_exec_error();
  void sweep();
  void later(std::function<void()> task);
  void finish_if_over();

  UvLoop& loop_;
  const CrewSettings settings_;
  const job::CrewEvents events_;
  job::StartRanks start_;
  UniqueFd coordinator_;
  UniqueFd store_port_;  // held as long as ranks may start
  UniqueFd input_writer_;
  std::optional<OutputStream> input_;
  std::optional<Guard> guard_;
  UniqueFd failures_, failure_reports_;       // where helpers report that they cannot become the program
  std::vector<std::unique_ptr<Seat>> seats_;  // one for each process
  std::map<int, int> starts_;                 // by rank
  RankTraces traces_;
  StoppedRanks stopped_;
  std::optional<UvSignal> child_signals_;  // tell that a rank was stopped, or goes on
  std::deque<Seat*> deaths_;               // those whose exit is not yet told, first death first
  TimerId sweep_timer_ = 0;
  std::array<bool, 2> held_{};
  bool started_ = false, stopping_ = false, over_ = false;
  AliveGuard alive_;
};

}  // namespace ringlet::launch
