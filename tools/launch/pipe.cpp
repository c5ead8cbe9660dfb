#include "tools/launch/pipe.hpp"

#include <uv.h>

#include <array>
#include <string>

#include "tools/launch/launch_error.hpp"

namespace ringlet::launch {

PipeEnds open_pipe(int read_flags, int write_flags) {
  std::array<uv_file, 2> ends{};
  if (const int error = uv_pipe(ends.data(), read_flags, write_flags); error != 0)
    throw LaunchError(1, std::string("cannot open a pipe: ") + uv_strerror(error));
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

PipeEnds open_socket_pair() {
  std::array<uv_os_sock_t, 2> ends{};
  if (const int error = uv_socketpair(SOCK_STREAM, 0, ends.data(), UV_NONBLOCK_PIPE, 0); error != 0)
    throw LaunchError(1, std::string("cannot open a pair of sockets: ") + uv_strerror(error));
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace ringlet::launch
