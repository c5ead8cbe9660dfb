#include <linux/tcp.h>
#include <netinet/in.h>

#include <cstddef>

#include "transport/uv/socket.hpp"

namespace ringlet::uv {

namespace {

constexpr std::uint64_t kMicrosecond = 1000;

}  // namespace

std::optional<SendCounters> send_counters(int socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  // Kernels before 4.10, and what only looks like Linux, do not count the time.
  const bool is_told = getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
                       length >= offsetof(tcp_info, tcpi_rwnd_limited) + sizeof info.tcpi_rwnd_limited;
  if (!is_told || info.tcpi_busy_time == 0) return std::nullopt;
  return SendCounters{info.tcpi_bytes_acked, (info.tcpi_busy_time - info.tcpi_rwnd_limited) * kMicrosecond};
}

}  // namespace ringlet::uv
