#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/ports/event_loop.hpp"
#include "tools/job/job_result.hpp"

namespace ringlet::launch {

/// Says which ranks a signal such as SIGSTOP has stopped for so long that others wait for them, and when they go on. Belongs to the loop's
/// thread.
class StoppedRanks {
 public:
  /// A debugger or a tool that saves processes stops them for less.
  static constexpr Duration kPatience = Duration::seconds(3);

  /// `loop` outlives it.
  StoppedRanks(EventLoop& loop, std::function<void(const std::string&)> say) : loop_(loop), say_(std::move(say)) {}
  ~StoppedRanks();
  StoppedRanks(const StoppedRanks&) = delete;
  StoppedRanks& operator=(const StoppedRanks&) = delete;

  void note_stop(const job::RankExit& rank, int signal_number);
  void note_continuation(const job::RankExit& rank);
  /// The rank has ended, or is to end, of which others tell.
  void forget(const job::RankExit& rank);

 private:
  EventLoop& loop_;
  const std::function<void(const std::string&)> say_;
  std::map<int, TimerId> stops_;  // by process; 0: has been told
};

}  // namespace ringlet::launch
