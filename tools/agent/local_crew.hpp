#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "core/ports/event_loop.hpp"
#include "tools/agent/rank_crew.hpp"
#include "tools/launch/coordinator_socket.hpp"
#include "tools/launch/local_ranks.hpp"
#include "tools/launch/pipe_reader.hpp"

namespace ringlet::agent {

/// Processes, started as `ringlet launch` starts its ranks, with a guard that kills them should this process be killed.
class LocalCrew final : public RankCrew {
 public:
  /// `uv` is the loop below `loop`; both outlive it. `helper_path`: the `ringlet` binary.
  LocalCrew(EventLoop& loop, uv_loop_t* uv, std::string helper_path, CrewEvents events);
  ~LocalCrew() override;

  Result<std::uint16_t> open_coordinator(const std::string& host) override;
  Result<std::vector<std::uint32_t>> start(const Start& start) override;
  void send(int signal_number) override;
  void stop(int signal_number, Duration grace) override;
  void hold_output(bool held) override;

 private:
  void start_ranks();
  void read(int rank, launch::UniqueFd fd, bool error);
  void later(std::function<void()> task);
  void tell_exit(const launch::RankExit& exit, std::optional<int> exec_error);
  void finish_if_over();

  struct Source {
    int rank;
    std::unique_ptr<launch::PipeReader> reader;
  };

  EventLoop& loop_;
  uv_loop_t* const uv_;
  const std::string helper_path_;
  const CrewEvents events_;
  launch::CoordinatorSocket coordinator_;
  launch::LaunchOptions options_;
  std::optional<launch::LocalRanks> ranks_;
  std::deque<Source> sources_;
  bool held_ = false, started_ = false, over_ = false;
  std::shared_ptr<bool> alive_;
};

}  // namespace ringlet::agent
