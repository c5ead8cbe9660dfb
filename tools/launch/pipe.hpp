#pragma once

#include "tools/launch/unique_fd.hpp"

namespace ringlet::launch {

struct Pipe {
  UniqueFd read_end, write_end;
};

/// Closed in other programs; `UV_NONBLOCK_PIPE` makes an end non-blocking. Throws `LaunchError`.
Pipe open_pipe(int read_flags, int write_flags);

}  // namespace ringlet::launch
