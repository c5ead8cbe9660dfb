#pragma once

#include "core/base/result.hpp"
#include "tools/job/messages.hpp"
#include "transport/unique_fd.hpp"

namespace ringlet::launch {

/// A TCP socket that listens where the ranks meet, at a numeric address of this machine, or one that stands for all of them. Rank 0
/// inherits it, so nobody can take the port between its choice and its use.
Result<UniqueFd> open_coordinator_socket(const job::BindPort& where);
/// Keeps a port from being chosen by the system for others, where it is free. A program that names the port may still listen there, as long
/// as it sets SO_REUSEADDR.
UniqueFd hold_port(const job::BindPort& where);

}  // namespace ringlet::launch
