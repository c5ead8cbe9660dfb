#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/ports/event_loop.hpp"
#include "tools/job/job_machines.hpp"

namespace ringlet::job {

/// The wait of a Job for the traces of ranks that have ended: says whose machines it is for, and ends it where the user does not want it.
/// Belongs to the loop's thread.
class JobTraces {
 public:
  struct Hooks {
    std::function<bool()> ranks_over;                            // whether all ranks have ended
    std::function<void(const std::string&)> tell_progress;       // a sentence for the user
    std::function<void(const std::vector<std::size_t>&)> leave;  // machines for which nobody waits any more
  };

  JobTraces(EventLoop& loop, JobMachines& machines, Hooks hooks) : loop_(loop), machines_(machines), hooks_(std::move(hooks)) {}
  ~JobTraces() { finish(); }
  JobTraces(const JobTraces&) = delete;
  JobTraces& operator=(const JobTraces&) = delete;

  /// A rank has ended.
  void note_exit();
  /// Leaves out what has not come. The machines have a moment to end in order; called again, none.
  void give_up();
  bool given_up() const { return given_up_; }
  /// Nothing more is to happen.
  void finish();

 private:
  void tell() const;
  void leave_machines();

  EventLoop& loop_;
  JobMachines& machines_;
  const Hooks hooks_;
  bool given_up_ = false;
  TimerId timer_ = 0;
};

}  // namespace ringlet::job
