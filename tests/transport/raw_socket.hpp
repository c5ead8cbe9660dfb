#pragma once

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <utility>

namespace ringlet::test {

/// A plain blocking IPv4 socket for the other end of a test, which does what none of our links would do.
class RawSocket {
 public:
  RawSocket() : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) { REQUIRE(descriptor_ >= 0); }
  explicit RawSocket(int descriptor) : descriptor_(descriptor) {}
  ~RawSocket() { close(); }
  RawSocket(RawSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

  /// Listens on a port of the loopback that the system chooses.
  static RawSocket listening(int backlog) {
    RawSocket socket;
    auto address = loopback(0);
    REQUIRE(::bind(socket.descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(socket.descriptor_, backlog) == 0);
    return socket;
  }
  static RawSocket connected_to(std::uint16_t port) {
    RawSocket socket;
    auto address = loopback(port);
    REQUIRE(::connect(socket.descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return socket;
  }

  int descriptor() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }
  std::uint16_t port() const {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    REQUIRE(getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    return ntohs(address.sin_port);
  }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  /// Closes with a reset instead of an orderly end.
  void reset() {
    const linger now{1, 0};
    setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }

 private:
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  int descriptor_;
};

/// Lowers the limit of open files to those that are open, until it is destroyed.
struct NoDescriptorsLeft {
  rlimit before{};
  NoDescriptorsLeft() {
    getrlimit(RLIMIT_NOFILE, &before);
    const RawSocket probe;
    auto lowered = before;
    lowered.rlim_cur = static_cast<rlim_t>(probe.descriptor());
    setrlimit(RLIMIT_NOFILE, &lowered);
  }
  ~NoDescriptorsLeft() { setrlimit(RLIMIT_NOFILE, &before); }
};

inline std::size_t open_descriptors() {
  const std::filesystem::path own = std::filesystem::exists("/proc/self/fd") ? "/proc/self/fd" : "/dev/fd";
  const std::filesystem::directory_iterator entries(own);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

}  // namespace ringlet::test
