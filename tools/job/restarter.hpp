#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/ports/event_loop.hpp"
#include "tools/job/job_result.hpp"
#include "tools/job/messages.hpp"
#include "tools/job/restart_policy.hpp"

namespace ringlet::job {

/// Has the ranks of an elastic job started again as RestartPolicy decides, and tells the user who left the group and who came. Belongs to
/// the loop's thread.
class Restarter {
 public:
  /// Each runs from the loop. `doors` is the list of those at which a rank can join.
  struct Actions {
    std::function<void(const std::vector<int>& ranks, const std::string& doors)> join;
    std::function<void(const std::vector<int>& ranks)> start_anew;
    std::function<void(const std::vector<int>& ranks)> stop;
    std::function<void(std::string why)> give_up;
    std::function<void()> end;  // nothing runs, and nothing will
    std::function<void(const std::string&)> say;
  };

  /// `loop` outlives it.
  Restarter(EventLoop& loop, const RestartPolicy::Options& options, Actions actions);
  ~Restarter() { finish(); }
  Restarter(const Restarter&) = delete;
  Restarter& operator=(const Restarter&) = delete;

  /// The next rank, in the order of their numbers, has been started.
  void add();
  /// The next rank can be started.
  void add_waiting();
  void note_member(const Membership& membership);
  /// Returns whether the rank may be started again.
  bool note_exit(const RankExit& exit);
  void note_lost(int rank);
  /// Nothing more is to happen.
  void finish();
  bool finished() const { return finished_; }

  /// Whether the rank runs, or will.
  int left() const { return policy_.left(); }
  /// Whether further ranks are of use.
  bool goes_on() const { return !finished_ && policy_.goes_on(); }
  bool counts(int rank) const { return !finished_ && rank < policy_.ranks() && policy_.counts(rank); }

 private:
  void decide_soon();
  void decide();
  void tell_shortage();
  std::string describe_lack() const;
  void tell_change(const Membership& membership);
  std::string doors() const;

  EventLoop& loop_;
  const RestartPolicy::Options options_;
  const Actions actions_;
  RestartPolicy policy_;
  std::map<int, std::string> doors_;             // of the members
  std::map<std::uint64_t, std::uint32_t> told_;  // by lineage: the last epoch that the user knows of
  TimerId timer_ = 0;
  bool deciding_ = false, finished_ = false;
  bool was_short_ = false;  // the group, at the last decision
  AliveGuard alive_;
};

}  // namespace ringlet::job
