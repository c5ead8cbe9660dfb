#pragma once

#include <string>

#include "tools/launch/launch_options.hpp"
#include "tools/launch/unique_fd.hpp"

namespace ringlet::launch {

/// A TCP socket that listens where the ranks meet. Rank 0 inherits it, so nobody can take the port between its choice and its use.
struct CoordinatorSocket {
  UniqueFd socket;
  std::string address;  // "127.0.0.1:40123": how ranks of this machine reach it
  int port = 0;
};

/// Throws `LaunchError`.
CoordinatorSocket open_coordinator_socket(const ListenAt& where);

}  // namespace ringlet::launch
