#include "tests/process/recording_proxy.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>

namespace ringlet::test {

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool write_all(int to, const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t written = ::send(to, bytes, count, MSG_NOSIGNAL);
    if (written <= 0) return false;
    bytes += written;
    count -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

RecordingProxy::RecordingProxy() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0);
  REQUIRE(::listen(listener_, 16) == 0);
  REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  REQUIRE(::pipe2(stop_, O_CLOEXEC) == 0);
  port_ = ntohs(address.sin_port);
}

RecordingProxy::~RecordingProxy() {
  finish();
  for (const int descriptor : {listener_, stop_[0], stop_[1]}) ::close(descriptor);
}

void RecordingProxy::pass_on_to(std::uint16_t port) {
  thread_ = std::thread([this, port] { run(port); });
}

std::string RecordingProxy::finish() {
  if (thread_.joinable()) {
    (void)!::write(stop_[1], "", 1);
    thread_.join();
  }
  return passed_;
}

void RecordingProxy::run(std::uint16_t port) {
  while (true) {
    std::vector<pollfd> waits{{stop_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Pair& pair : pairs_)
      for (int end = 0; end < 2; ++end) waits.push_back({pair.open[end] ? pair.ends[end] : -1, POLLIN, 0});
    if (::poll(waits.data(), waits.size(), -1) < 0 || waits[0].revents != 0) break;
    for (std::size_t i = 2; i < waits.size(); ++i)
      if (waits[i].revents != 0) move(pairs_[(i - 2) / 2], static_cast<int>(i % 2));
    if (waits[1].revents != 0 && !accept_one(port)) break;
  }
  for (const Pair& pair : pairs_)
    for (const int end : pair.ends) ::close(end);
  pairs_.clear();
}

bool RecordingProxy::accept_one(std::uint16_t port) {
  const int from = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  const int to = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  pairs_.push_back({{from, to}});
  return from >= 0 && ::connect(to, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

void RecordingProxy::move(Pair& pair, int from) {
  std::array<char, 65536> bytes;
  const ssize_t count = ::recv(pair.ends[from], bytes.data(), bytes.size(), 0);
  if (count > 0) passed_.append(bytes.data(), static_cast<std::size_t>(count));
  if (count > 0 && write_all(pair.ends[1 - from], bytes.data(), static_cast<std::size_t>(count))) return;
  pair.open[from] = false;
  ::shutdown(pair.ends[1 - from], SHUT_WR);
}

}  // namespace ringlet::test
