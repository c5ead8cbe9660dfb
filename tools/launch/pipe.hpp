#pragma once

#include "transport/unique_fd.hpp"

namespace ringlet::launch {

struct PipeEnds {
  UniqueFd read_end, write_end;
};

/// Both ends are closed when another program is executed; `UV_NONBLOCK_PIPE` makes an end non-blocking. Throws `LaunchError`.
PipeEnds open_pipe(int read_flags, int write_flags);
/// Stream sockets, of which the one that reads does not block. Throws `LaunchError`.
PipeEnds open_socket_pair();

}  // namespace ringlet::launch
