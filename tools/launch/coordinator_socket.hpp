#pragma once

#include <string>

#include "tools/launch/launch_options.hpp"
#include "tools/launch/unique_fd.hpp"

namespace ringlet::launch {

/// A TCP socket that listens where the ranks meet. Rank 0 inherits it, so nobody can take the port between its choice and its use.
struct CoordinatorSocket {
  UniqueFd socket;
  int port = 0;
};

/// How ranks of this machine reach a socket that listens on `host`, which may stand for all addresses.
std::string host_here(const std::string& host);

/// Throws `LaunchError`.
CoordinatorSocket open_coordinator_socket(const ListenAt& where);

}  // namespace ringlet::launch
