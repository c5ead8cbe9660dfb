#include "tools/launch/coordinator_socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "tools/launch/launch_error.hpp"

namespace ringlet::launch {

namespace {

constexpr int kBacklog = 128;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

std::string describe(const ListenAt& where, int error) {
  if (error == EADDRINUSE) return "it is in use by another program; choose another port, or 0 for any that is free";
  if (error == EADDRNOTAVAIL) return "it is not an address of this machine; choose one that is, or 0.0.0.0 for all";
  if (error == EACCES) return fmt::format("this user may not use port {}; choose one above 1023", where.port);
  return std::strerror(error);
}

int port_of(int socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return 0;
  // The port is at the same offset in IPv4's and IPv6's address structures.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

}  // namespace

std::string host_here(const std::string& host) {
  if (host == "0.0.0.0") return "127.0.0.1";
  return host == "::" ? "::1" : host;
}

CoordinatorSocket open_coordinator_socket(const ListenAt& where) {
  const auto refuse = [&](const std::string& why) {
    throw LaunchError(1, fmt::format("cannot listen on {} port {} for the ranks to meet: {}", where.host, where.port, why));
  };
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* list = nullptr;
  if (::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &list) != 0)
    refuse("it is no numeric address; give one of this machine's, or 0.0.0.0 for all");
  const std::unique_ptr<addrinfo, FreeAddresses> address(list);
  CoordinatorSocket result{UniqueFd(::socket(address->ai_family, SOCK_STREAM, 0)), 0};
  const int fd = result.socket.get();
  const int on = 1;
  // Without SO_REUSEADDR a port that was in use a moment ago would be refused.
  if (fd < 0 || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd, address->ai_addr, address->ai_addrlen) != 0 || ::listen(fd, kBacklog) != 0)
    refuse(describe(where, errno));
  result.port = port_of(fd);
  return result;
}

}  // namespace ringlet::launch
