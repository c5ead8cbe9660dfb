#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cstring>

#include "transport/uv/socket.hpp"

namespace ringlet::uv {
namespace {

// On Linux a send buffer begins at 16 KiB and grows with the connection, which would slow down the first megabytes between ranks of one
// machine. Connections to other machines keep the kernel's automatic size, because setting a fixed size turns it off.
constexpr int kLoopbackSendBuffer = 256 * 1024;

void set_flag(int socket, int level, int option, int value) { setsockopt(socket, level, option, &value, sizeof value); }

}  // namespace

const int kSendFlags = MSG_NOSIGNAL | MSG_DONTWAIT;

void prevent_sigpipe(int) {}

int open_stream_socket(int family) { return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

int accept_stream_socket(int listener) { return accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); }

void set_platform_stream_options(int socket, bool same_machine) {
  // Congestion control that paces its packets, such as bbr, which some systems use by default, takes twice the time for large messages on a
  // LAN.
  for (const char* algorithm : {"cubic", "reno"})
    if (setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, algorithm, static_cast<socklen_t>(std::strlen(algorithm))) == 0) break;
  if (same_machine) setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kLoopbackSendBuffer, sizeof kLoopbackSendBuffer);
}

int open_datagram_socket(int family) {
  const int socket = ::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket >= 0 && family == AF_INET6) set_flag(socket, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  return socket;
}

bool share_port(int socket) {
  const int on = 1;
  return setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
}

void hear_own_groups_only(int socket, int family) {
  if (family == AF_INET)
    set_flag(socket, IPPROTO_IP, IP_MULTICAST_ALL, 0);
  else
    set_flag(socket, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
}

}  // namespace ringlet::uv
