#include "tests/process/recording_proxy.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>

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

/// Appends what comes next; returns false where nothing does any more.
bool read_some(int from, std::string& to) {
  std::array<char, 4096> bytes;
  const ssize_t count = ::recv(from, bytes.data(), bytes.size(), 0);
  // The other side resets the connection where it has thrown away what it was told.
  REQUIRE((count >= 0 || errno == ECONNRESET));
  if (count > 0) to.append(bytes.data(), static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace

std::string all_bytes(const std::vector<Conversation>& conversations) {
  std::string all;
  for (const auto& [from_dialler, from_acceptor] : conversations) all += from_dialler + from_acceptor;
  return all;
}

std::string replay(std::uint16_t port, const std::string& from_dialler, std::size_t hello) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{60, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const sockaddr_in address = loopback(port);
  REQUIRE(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(write_all(socket, from_dialler.data(), std::min(hello, from_dialler.size())));
  std::string answer;
  bool more = true;
  while (more && answer.size() < hello) more = read_some(socket, answer);
  // The other side may close before it has read everything.
  if (more && from_dialler.size() > hello) write_all(socket, from_dialler.data() + hello, from_dialler.size() - hello);
  while (more) more = read_some(socket, answer);
  ::close(socket);
  return answer;
}

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

Conversation RecordingProxy::wait_for_dialler(std::size_t bytes) {
  std::unique_lock lock(mutex_);
  REQUIRE(more_.wait_for(lock, std::chrono::minutes(1),
                         [&] { return !conversations_.empty() && conversations_[0].from_dialler.size() >= bytes; }));
  return conversations_[0];
}

std::vector<Conversation> RecordingProxy::finish() {
  if (thread_.joinable()) {
    (void)!::write(stop_[1], "", 1);
    thread_.join();
  }
  return conversations_;
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
  const std::lock_guard lock(mutex_);
  pairs_.push_back({{from, to}, conversations_.size()});
  conversations_.emplace_back();
  return from >= 0 && ::connect(to, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

void RecordingProxy::move(Pair& pair, int from) {
  std::array<char, 65536> bytes;
  const ssize_t count = ::recv(pair.ends[from], bytes.data(), bytes.size(), 0);
  if (count > 0) {
    const std::lock_guard lock(mutex_);
    Conversation& kept = conversations_[pair.conversation];
    (from == 0 ? kept.from_dialler : kept.from_acceptor).append(bytes.data(), static_cast<std::size_t>(count));
    more_.notify_all();
  }
  if (count > 0 && write_all(pair.ends[1 - from], bytes.data(), static_cast<std::size_t>(count))) return;
  pair.open[from] = false;
  ::shutdown(pair.ends[1 - from], SHUT_WR);
}

}  // namespace ringlet::test
