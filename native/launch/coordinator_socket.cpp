#include "native/launch/coordinator_socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "native/launch/launch_error.hpp"

namespace ringlet::launch {

CoordinatorSocket open_coordinator_socket() {
  constexpr int kBacklog = 128;
  CoordinatorSocket result{UniqueFd(::socket(AF_INET, SOCK_STREAM, 0)), 0};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const int fd = result.socket.get();
  if (fd < 0 || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || ::bind(fd, generic, length) != 0 || ::listen(fd, kBacklog) != 0 ||
      ::getsockname(fd, generic, &length) != 0)
    throw LaunchError(1, std::string("cannot open a socket on 127.0.0.1 for the ranks to meet at: ") + std::strerror(errno));
  result.port = ntohs(address.sin_port);
  return result;
}

}  // namespace ringlet::launch
