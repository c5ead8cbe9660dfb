#include "tests/web/assault.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

namespace ringlet::test {

namespace {

constexpr std::chrono::milliseconds kDripInterval{300};

bool starts_with(const std::string& text, const std::string& begin) { return text.compare(0, begin.size(), begin) == 0; }
bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

void Assault::begin(Blow blow) {
  Client& client = clients_.emplace_back(Client{std::move(blow), RawSocket::connected_to(port_)});
  REQUIRE(::fcntl(client.socket.descriptor(), F_SETFL, O_NONBLOCK) == 0);
  say(client, client.blow.first);
}

/// Bytes that the connection does not take are dropped, since the server wants no more of them.
void Assault::say(Client& client, const std::string& text) {
  if (!text.empty()) static_cast<void>(::send(client.socket.descriptor(), text.data(), text.size(), MSG_NOSIGNAL));
}

void Assault::hear(Client& client) {
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = ::recv(client.socket.descriptor(), buffer.data(), buffer.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      client.over = true;
      client.socket.close();
      return;
    }
    client.heard.append(buffer.data(), static_cast<std::size_t>(count));
  }
  const bool upgraded = starts_with(client.heard, "HTTP/1.1 101 ") && client.heard.find("\r\n\r\n") != std::string::npos;
  if (upgraded && !std::exchange(client.upgraded, true)) say(client, client.blow.after_upgrade);
}

bool Assault::goes_on() {
  std::vector<pollfd> entries;
  std::vector<Client*> asked;
  for (Client& client : clients_) {
    if (client.over) continue;
    entries.push_back({client.socket.descriptor(), POLLIN, 0});
    asked.push_back(&client);
  }
  if (entries.empty()) return false;
  static_cast<void>(::poll(entries.data(), static_cast<nfds_t>(entries.size()), static_cast<int>(kDripInterval.count())));
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].revents != 0) hear(*asked[i]);
  drip();
  return true;
}

void Assault::drip() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_drip_) return;
  next_drip_ = now + kDripInterval;
  for (Client& client : clients_) {
    const std::string& drip = client.blow.drip;
    const bool ready = client.upgraded || client.blow.after_upgrade.empty();
    if (!client.over && ready && !drip.empty()) say(client, std::string(1, drip[client.dripped++ % drip.size()]));
  }
}

std::size_t Assault::held() const {
  return static_cast<std::size_t>(std::count_if(clients_.begin(), clients_.end(), [](const Client& client) { return !client.over; }));
}

void Assault::check() const {
  for (const Client& client : clients_) {
    CAPTURE(client.blow.what, client.heard);
    CHECK(client.over);
    CHECK(starts_with(client.heard, client.blow.answer));
    CHECK(ends_with(client.heard, client.blow.last));
  }
}

}  // namespace ringlet::test
