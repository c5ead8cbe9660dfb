#pragma once

#include "core/base/result.hpp"
#include "tools/job/messages.hpp"
#include "tools/launch/unique_fd.hpp"

namespace ringlet::launch {

/// A TCP socket that listens where the ranks meet, at a numeric address of this machine, or one that stands for all of them. Rank 0
/// inherits it, so nobody can take the port between its choice and its use.
Result<UniqueFd> open_coordinator_socket(const job::BindPort& where);

}  // namespace ringlet::launch
