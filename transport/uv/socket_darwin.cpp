#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "transport/uv/socket.hpp"

namespace ringlet::uv {
namespace {

bool has_no_sigpipe(int socket) {
  const int on = 1;
  return setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on) == 0;
}

/// Sets the flags that open_stream_socket() promises. Takes -1, too. On failure closes the socket and returns -1.
int prepare(int socket) {
  if (socket < 0) return -1;
  const bool ready =
      fcntl(socket, F_SETFD, FD_CLOEXEC) == 0 && fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK) == 0 && has_no_sigpipe(socket);
  if (ready) return socket;
  const int error = errno;
  ::close(socket);
  errno = error;
  return -1;
}

}  // namespace

const int kSendFlags = MSG_DONTWAIT;

void prevent_sigpipe(int socket) { (void)has_no_sigpipe(socket); }

int open_stream_socket(int family) { return prepare(::socket(family, SOCK_STREAM, 0)); }

int accept_stream_socket(int listener) { return prepare(::accept(listener, nullptr, nullptr)); }

void set_platform_stream_options(int, bool) {}

int open_datagram_socket(int family) {
  const int socket = prepare(::socket(family, SOCK_DGRAM, 0));
  const int on = 1;
  if (socket >= 0 && family == AF_INET6) setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  return socket;
}

bool share_port(int socket) {
  const int on = 1;
  return setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
         setsockopt(socket, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0;
}

// macOS always restricts a socket to its own groups.
void hear_own_groups_only(int, int) {}

}  // namespace ringlet::uv
