#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cstring>

#include "transport/uv/socket.hpp"

namespace ringlet::uv {
namespace {

// The kernel grows a send buffer from 16 KiB as the connection goes; between ranks of one machine that growth is what the first megabytes
// wait for. To other machines its own tuning stays on, which a fixed size would end.
constexpr int kLoopbackSendBuffer = 256 * 1024;

}  // namespace

const int kSendFlags = MSG_NOSIGNAL | MSG_DONTWAIT;

int open_stream_socket(int family) { return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

int accept_stream_socket(int listener) { return accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); }

void set_platform_stream_options(int socket, bool same_machine) {
  // Congestion control that paces (a system's default may be bbr) takes twice the time for large messages on a LAN.
  for (const char* algorithm : {"cubic", "reno"})
    if (setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, algorithm, static_cast<socklen_t>(std::strlen(algorithm))) == 0) break;
  if (same_machine) setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kLoopbackSendBuffer, sizeof kLoopbackSendBuffer);
}

}  // namespace ringlet::uv
