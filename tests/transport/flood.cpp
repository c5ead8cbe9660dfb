#include "tests/transport/flood.hpp"

#include <arpa/inet.h>

#include <cerrno>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "tests/preface.hpp"
#include "tests/transport/raw_socket.hpp"

namespace ringlet::test {

namespace {

constexpr int kAtOnce = 60;

// RawSocket's own dial uses Catch's checks, which may not run on other threads than the test's.
std::optional<RawSocket> dial(std::uint16_t port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  if (descriptor < 0) return std::nullopt;
  RawSocket socket(descriptor);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return std::nullopt;
  return socket;
}

/// Waits until the server ends a new connection. The ones before it have then left the backlog, which is short and drops what does not fit.
bool is_thrown_out(RawSocket socket) {
  const timeval patience{10, 0};
  setsockopt(socket.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const std::string words = "no rank speaks so\r\n\r\n";
  static_cast<void>(::send(socket.descriptor(), words.data(), words.size(), MSG_NOSIGNAL));
  char answer[512];
  ssize_t count = 0;
  do count = ::recv(socket.descriptor(), answer, sizeof answer, 0);
  while (count > 0);
  return count == 0 || errno == ECONNRESET;
}

std::string rubbish(std::mt19937& random, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (char& letter : text) letter = static_cast<char>(random());
  return text;
}

}  // namespace

bool flood(std::uint16_t port, int count, const std::string& recorded, const std::function<bool()>& goes_on) {
  std::mt19937 random(1);
  std::deque<RawSocket> open;
  const std::string hail = preface_text();
  for (int number = 0; number < count; ++number) {
    if (goes_on && !goes_on()) return false;
    auto socket = dial(port);
    if (!socket) return false;
    if (number % kAtOnce == 0) {
      if (!is_thrown_out(std::move(*socket))) return false;
      continue;
    }
    std::string words;
    switch (number % 8) {
      case 0:
        words = rubbish(random, random() % 600);
        break;
      case 1:
        break;
      case 2:
        socket->reset();
        continue;
      case 3:
        words = hail.substr(0, random() % hail.size());
        break;
      case 4:
        words = hail + rubbish(random, 32 + random() % 200);
        break;
      case 5:
        words = "GET / HTTP/1.1\r\nHost: ring:1\r\n\r\n";
        break;
      case 6:
        words = std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
        break;
      case 7:
        words = recorded;
        break;
    }
    static_cast<void>(::send(socket->descriptor(), words.data(), words.size(), MSG_NOSIGNAL));
    open.push_back(std::move(*socket));
    if (open.size() > static_cast<std::size_t>(kAtOnce)) open.pop_front();
  }
  return true;
}

}  // namespace ringlet::test
