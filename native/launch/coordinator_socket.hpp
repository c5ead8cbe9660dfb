#pragma once

#include "native/launch/unique_fd.hpp"

namespace ringlet::launch {

/// A TCP socket that listens on a free port of 127.0.0.1. Rank 0 inherits it, so nobody can take the port between its choice and its use.
struct CoordinatorSocket {
  UniqueFd socket;
  int port = 0;
};

/// Throws `LaunchError`.
CoordinatorSocket open_coordinator_socket();

}  // namespace ringlet::launch
