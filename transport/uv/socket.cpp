#include "transport/uv/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <uv.h>

#include <cstring>

namespace ringlet::uv {
namespace {

void append_numeric(std::vector<SocketAddress>& found, const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  if (host.empty() || getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) != 0) return;
  for (const auto* entry = list; entry != nullptr; entry = entry->ai_next) {
    auto& address = found.emplace_back();
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.length = entry->ai_addrlen;
  }
  freeaddrinfo(list);
}

void set_flag(int socket, int level, int option) {
  const int on = 1;
  setsockopt(socket, level, option, &on, sizeof on);
}

}  // namespace

std::vector<SocketAddress> numeric_addresses(const Address& address) {
  std::vector<SocketAddress> found;
  if (address.host == "localhost") {
    append_numeric(found, "127.0.0.1", address.port);
    append_numeric(found, "::1", address.port);
  } else {
    append_numeric(found, address.host, address.port);
  }
  return found;
}

Address to_address(const SocketAddress& address) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(address.get(), address.length, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {"unknown", 0};
  return {host, static_cast<std::uint16_t>(std::stoi(port))};
}

SocketAddress local_address(int socket) {
  SocketAddress address;
  getsockname(socket, address.get(), &address.length);
  return address;
}

SocketAddress remote_address(int socket) {
  SocketAddress address;
  getpeername(socket, address.get(), &address.length);
  return address;
}

bool is_loopback(const SocketAddress& address) { return ringlet::is_loopback(to_address(address)); }

bool connected_to_itself(int socket) { return to_address(local_address(socket)) == to_address(remote_address(socket)); }

int take_error(int socket) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

std::string describe_error(int error) { return uv_strerror(uv_translate_sys_error(error)); }

void set_stream_options(int socket) {
  set_flag(socket, IPPROTO_TCP, TCP_NODELAY);
  set_flag(socket, SOL_SOCKET, SO_KEEPALIVE);
  set_platform_stream_options(socket, is_loopback(remote_address(socket)));
}

}  // namespace ringlet::uv
