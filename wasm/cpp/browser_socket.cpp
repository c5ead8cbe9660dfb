#include "wasm/cpp/browser_socket.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/wire/frame.hpp"
#include "wasm/cpp/imports.hpp"

namespace ringlet::browser {

namespace {

// The number of bytes that the host may hold unsent. The host does not tell when there is room again, so a timer asks.
constexpr double kHighWaterBytes = 4 << 20;
constexpr Duration kStallPause = Duration::milliseconds(1);
// Parts are joined to messages of this size, a segment with its header, because a message costs the host more than copying its bytes.
constexpr std::size_t kMessageBytes = (256 << 10) + kFrameHeaderBytes;
// The number of bytes that may wait while the user has no room. A user that lets more wait is broken, since WebSockets cannot be paused.
constexpr std::size_t kMaxWaitingBytes = 64 << 20;

/// All sockets by the number that the host knows them by, from the dial to the end.
std::unordered_map<int32_t, std::weak_ptr<BrowserSocket>>& sockets() {
  static std::unordered_map<int32_t, std::weak_ptr<BrowserSocket>> all;
  return all;
}

int32_t next_id() {
  static int32_t last = 0;
  return ++last;
}

std::string describe_close(bool clean, int code, const char* reason) {
  std::string text = clean ? "closed by the other side" : "closed";
  text += ", WebSocket code " + std::to_string(code);
  if (*reason != 0) text += ": " + std::string(reason);
  return text;
}

// Whether the peer has ended in order: its close code is 1000 (normal) or 1005 (none given).
bool is_orderly(bool clean, int code) { return clean && (code == 1000 || code == 1005); }

}  // namespace

BrowserSocket::BrowserSocket(BrowserLoop& loop, std::shared_ptr<Traffic> traffic, std::string name, Opened on_opened)
    : loop_(loop), traffic_(std::move(traffic)), name_(std::move(name)), id_(next_id()), on_opened_(std::move(on_opened)) {}

std::shared_ptr<BrowserSocket> BrowserSocket::dial(BrowserLoop& loop, std::shared_ptr<Traffic> traffic, const std::string& url,
                                                   std::string name, Opened on_opened) {
  const std::shared_ptr<BrowserSocket> socket(new BrowserSocket(loop, std::move(traffic), std::move(name), std::move(on_opened)));
  sockets().emplace(socket->id_, socket);
  ringlet_socket_open(socket->id_, url.c_str());
  return socket;
}

BrowserSocket::~BrowserSocket() { close(); }

std::shared_ptr<BrowserSocket> BrowserSocket::find(int32_t id) {
  const auto found = sockets().find(id);
  return found == sockets().end() ? nullptr : found->second.lock();
}

void BrowserSocket::close() {
  if (sockets().erase(id_) != 0) ringlet_socket_close(id_);
  loop_.cancel(std::exchange(stall_timer_, 0));
}

void BrowserSocket::abandon() {
  user_ = nullptr;
  on_opened_ = nullptr;
  close();
}

void BrowserSocket::start(LinkUser& user) {
  user_ = &user;
  end_told_ = false;
  wake();
}

void BrowserSocket::wake() {
  woken_again_ = true;
  if (user_ != nullptr) loop_.wake(shared_from_this());
}

void BrowserSocket::finish_sending() {
  finish_requested_ = true;
  wake();
}

void BrowserSocket::flush() {
  if (user_ != nullptr) deliver();
  if (user_ != nullptr) send_all();
}

void BrowserSocket::send_all() {
  if (!open_ || ended_ || send_ended_ || stall_timer_ != 0) return;
  while (user_ != nullptr) {
    if (ringlet_socket_buffered(id_) >= kHighWaterBytes) return stall();
    woken_again_ = false;
    LinkUser* const user = user_;
    const auto parts = user->to_send();
    if (user_ != user) return;
    std::size_t bytes = 0;
    for (const ConstBytes part : parts) bytes += part.size();
    if (bytes == 0) break;
    send_parts(parts);
    traffic_->sent += static_cast<double>(bytes);
    user->sent(bytes);
  }
  if (user_ == nullptr) return;
  if (woken_again_)
    loop_.wake(shared_from_this());
  else if (finish_requested_) {
    send_ended_ = true;
    ringlet_socket_finish(id_);
  }
}

void BrowserSocket::send_parts(std::span<const ConstBytes> parts) {
  static std::vector<std::byte> message(kMessageBytes);
  std::size_t filled = 0;
  const auto send_message = [&] {
    if (filled > 0) ringlet_socket_send(id_, message.data(), std::exchange(filled, 0));
  };
  for (ConstBytes part : parts) {
    while (!part.empty()) {
      if (filled == message.size()) send_message();
      if (filled == 0 && part.size() >= message.size()) {
        ringlet_socket_send(id_, part.data(), part.size());
        break;
      }
      const std::size_t bytes = std::min(part.size(), message.size() - filled);
      std::memcpy(message.data() + filled, part.data(), bytes);
      filled += bytes;
      part = part.subspan(bytes);
    }
  }
  send_message();
}

void BrowserSocket::stall() {
  stall_timer_ = loop_.after(kStallPause, [this] {
    stall_timer_ = 0;
    if (user_ != nullptr) send_all();
  });
}

bool BrowserSocket::receive_once() {
  LinkUser* const user = user_;
  const auto parts = user->to_receive();
  if (user_ != user) return true;
  std::size_t taken = 0;
  for (const Bytes part : parts) {
    const std::size_t bytes = std::min(part.size(), waiting_);
    if (bytes == 0) continue;
    ringlet_socket_take(id_, part.data(), bytes);
    waiting_ -= bytes;
    taken += bytes;
  }
  if (taken == 0) return false;
  traffic_->received += static_cast<double>(taken);
  user->received(taken);
  return true;
}

void BrowserSocket::deliver() {
  while (user_ != nullptr && waiting_ > 0)
    if (!receive_once()) break;
  if (user_ != nullptr && ended_) tell_end();
}

void BrowserSocket::tell_end() {
  if (!failure_.ok()) {
    auto& user = *std::exchange(user_, nullptr);
    user.link_failed(failure_);
  } else if (waiting_ == 0 && !std::exchange(end_told_, true)) {
    user_->receive_ended();
  }
}

void BrowserSocket::on_opened(int32_t id) {
  const auto socket = find(id);
  if (!socket) return;
  socket->open_ = true;
  socket->loop_.turn([&] {
    if (socket->on_opened_) std::exchange(socket->on_opened_, nullptr)({});
  });
}

void BrowserSocket::on_message(int32_t id, std::size_t bytes) {
  const auto socket = find(id);
  if (!socket || socket->ended_) return;
  socket->waiting_ += bytes;
  socket->loop_.turn([&] {
    socket->deliver();
    if (socket->user_ != nullptr && socket->waiting_ > kMaxWaitingBytes) {
      socket->ended_ = true;
      socket->failure_ = {Errc::protocol_error, "the connection to " + socket->name_ + " holds more than " +
                                                    std::to_string(kMaxWaitingBytes >> 20) + " MiB that nobody takes"};
      socket->tell_end();
    }
  });
}

void BrowserSocket::on_closed(int32_t id, bool clean, int code, const char* reason) {
  const auto socket = find(id);
  if (!socket || socket->ended_) return;
  socket->ended_ = true;
  const std::string what = describe_close(clean, code, reason);
  socket->loop_.turn([&] {
    if (socket->on_opened_) {
      std::exchange(socket->on_opened_, nullptr)(Status{Errc::peer_lost, "cannot connect to " + socket->name_ + " (" + what + ")"});
      return;
    }
    if (!is_orderly(clean, code)) socket->failure_ = {Errc::peer_lost, "the connection to " + socket->name_ + " broke (" + what + ")"};
    socket->deliver();
  });
}

}  // namespace ringlet::browser
