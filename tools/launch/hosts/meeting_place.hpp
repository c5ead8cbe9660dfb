#pragma once

#include <span>
#include <string>

#include "core/base/address.hpp"
#include "tools/job/messages.hpp"
#include "tools/launch/hosts/host_list.hpp"

namespace ringlet::launch {

/// A host and its deputy's answer.
struct ReachedHost {
  Host host;
  job::Offer offer;
};

/// How the others reach the first of these hosts: by the address that the hostfile has for it, else by the one that ssh's servers
/// saw, which is better than a name that only ssh's own configuration may know.
std::string choose_meeting_host(std::span<const ReachedHost> hosts);

/// Where rank 0's machine binds so that `meeting` leads there.
job::BindPort listen_for(const Address& meeting);

}  // namespace ringlet::launch
