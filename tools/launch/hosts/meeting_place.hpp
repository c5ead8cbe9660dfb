#pragma once

#include <span>
#include <string>

#include "tools/job/messages.hpp"
#include "tools/launch/hosts/host_list.hpp"
#include "tools/launch/launch_options.hpp"

namespace ringlet::launch {

/// A host and its deputy's answer.
struct ReachedHost {
  Host host;
  job::Offer offer;
};

/// How the others reach the first host, where rank 0 runs: by the address that the hostfile has for it, else by the one that ssh's servers
/// saw, which is better than a name that only ssh's own configuration may know.
std::string choose_meeting_host(std::span<const ReachedHost> hosts);

/// The address that rank 0's machine binds so that `meeting_host` leads there.
ListenAt listen_for(const std::string& meeting_host, int port);

}  // namespace ringlet::launch
