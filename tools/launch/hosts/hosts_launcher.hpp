#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/base/port_range.hpp"
#include "tools/job/job.hpp"
#include "tools/launch/hosts/host_list.hpp"
#include "tools/launch/hosts/ssh_command.hpp"
#include "tools/launch/launch_options.hpp"

namespace ringlet::launch {

/// Where the ranks of a launch on several machines run and meet.
struct HostsPlan {
  std::vector<Host> hosts;                 // rank 0 is on the first; each has its number of slots, or one
  std::vector<job::Variable> environment;  // of all ranks; a host's own and the options' come after it, and hold
  SshOptions ssh;
  std::optional<Address> coordinator;  // how the others reach rank 0's machine, port 0: any that is free there; unset: found out
  PortRange ports{};                   // where rank 0's machine may listen if `coordinator` has no port
};

/// Where ranks of these machines meet, of which the first one has rank 0.
job::MeetingPoint choose_meeting(const HostsPlan& plan, const std::vector<job::Participant>& participants);

/// Does on several machines what launch() does on this one. First every host is reached, and the ranks start only when all would run the
/// program. A host that is lost, or is silent when its ranks are to end, counts as the failure of its ranks. Everything secret goes through
/// ssh's standard input. Throws `LaunchError` where ssh cannot be started.
job::JobResult launch_on(const HostsPlan& plan, const LaunchOptions& options);

}  // namespace ringlet::launch
