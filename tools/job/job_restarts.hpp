#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/ports/event_loop.hpp"
#include "tools/job/end_policy.hpp"
#include "tools/job/job_machines.hpp"
#include "tools/job/job_options.hpp"
#include "tools/job/restarter.hpp"

namespace ringlet::job {

/// Does on the machines of an elastic job what its Restarter decides, and lets machines go without which the job can go on. Belongs to the
/// loop's thread.
class JobRestarts {
 public:
  struct Hooks {
    std::function<void(const std::vector<std::size_t>& machines)> ask_to_listen;  // the first of these; start_renewed() is to follow
    std::function<void()> end;                                                    // nothing runs, and nothing will
    std::function<void(const std::string&)> tell_progress;                        // how ranks come and go
    std::function<void(const std::string&)> on_notice;                            // any other sentence for the user
  };

  /// All that is given by reference outlives it.
  JobRestarts(EventLoop& loop, const JobOptions& options, JobMachines& machines, EndPolicy& policy, Hooks hooks);

  Restarter& restarter() { return restarter_; }
  const Restarter& restarter() const { return restarter_; }
  /// How many further ranks are of use, and may be added.
  int wanted_ranks() const;
  void note_member(std::size_t index, Membership membership);
  /// The machine's ranks can be neither asked nor started any more.
  void note_lost(std::size_t index);
  /// The same where the machine is still there, and its ranks end by themselves. If they were the last, the job fails so.
  void let_go(std::size_t index, const Failed& failed);
  /// Whether it was this machine that was asked to listen for all that start anew.
  bool awaits_port_of(std::size_t index) const { return renewal_ && index == renewal_->machine; }
  void start_renewed(const std::string& coordinator);

 private:
  /// All ranks are to start anew, and one machine has been asked to listen for them.
  struct Renewal {
    std::size_t machine = 0;
    std::vector<int> ranks;
  };
  Restarter::Actions make_actions();
  Order order_to_end() const;
  bool is_still_trusted(std::size_t index);
  void join(const std::vector<int>& ranks, const std::string& doors);
  void start_anew(const std::vector<int>& ranks);
  void leave_renewal(std::size_t index);

  const JobOptions& options_;
  JobMachines& machines_;
  EndPolicy& policy_;
  const Hooks hooks_;
  Restarter restarter_;
  std::optional<Renewal> renewal_;
};

}  // namespace ringlet::job
