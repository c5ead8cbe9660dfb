#include "transport/web/web_socket_link.hpp"

#include <algorithm>
#include <utility>

namespace ringlet::web {

namespace {

constexpr std::uint8_t kBinaryOpcode = 0x2, kCloseOpcode = 0x8, kPongOpcode = 0xa;
// Frames are unmasked while they are copied from this buffer to the user's memory, so even the larger buffer should fit the cache.
constexpr std::size_t kSmallBuffer = 4 << 10;
constexpr std::size_t kLargeBuffer = 256 << 10;

/// Writes the head of a server's frame that is the last of its message, and returns the head's size.
std::size_t write_head(std::uint8_t opcode, std::size_t payload, std::span<std::byte, 10> head) {
  head[0] = std::byte(0x80U | opcode);
  const std::size_t length_bytes = payload < 126 ? 0 : payload < 65536 ? 2 : 8;
  head[1] = std::byte(length_bytes == 0 ? payload : length_bytes == 2 ? 126 : 127);
  for (std::size_t i = 0; i < length_bytes; ++i) head[2 + i] = std::byte((payload >> (8 * (length_bytes - 1 - i))) & 0xffU);
  return 2 + length_bytes;
}

}  // namespace

WebSocketLink::WebSocketLink(EventLoop& loop, std::unique_ptr<Link> connection, const WebSocketLimits& limits)
    : loop_(loop),
      limits_(limits),
      peer_name_(connection->peer_name()),
      reader_(limits.max_message_bytes),
      buffer_(kSmallBuffer),
      connection_(std::move(connection)) {
  connection_->start(*this);
}

WebSocketLink::~WebSocketLink() {
  loop_.cancel(delivery_);
  loop_.cancel(close_timer_);
}

/// Calls the user. Returns false if the user has destroyed this link.
template <class Call>
bool WebSocketLink::survives(Call call) {
  const AliveGuard::Watch watch = guard_.watch();
  call(*user_);
  return watch.alive();
}

void WebSocketLink::start(LinkUser& user) {
  user_ = &user;
  end_told_ = false;
  deliver_later();
  wake();
}

void WebSocketLink::wake() {
  woken_ = true;
  if (!undelivered().empty()) deliver_later();
  if (connection_) connection_->wake();
}

void WebSocketLink::finish_sending() {
  finish_requested_ = true;
  wake();
}

// --- receiving ---

std::span<const Bytes> WebSocketLink::to_receive() {
  const bool wanted = failure_ || (user_ != nullptr && undelivered().empty());
  if (!wanted) return {};
  begin_ = end_ = 0;
  if (reader_.payload_left() > buffer_.size()) buffer_.resize(kLargeBuffer);
  room_ = buffer_;
  return {&room_, 1};
}

void WebSocketLink::received(std::size_t bytes) {
  end_ += bytes;
  deliver();
}

/// Delivers from a timer, because the user is inside a call of its own and may not be called.
void WebSocketLink::deliver_later() {
  if (delivery_ != 0) return;
  delivery_ = loop_.after(Duration{}, [this] {
    delivery_ = 0;
    // The connection may have stopped receiving because the user had no room.
    if (deliver() && connection_) connection_->wake();
  });
}

/// Hands received bytes to the user. Returns false if this link was destroyed or has failed.
bool WebSocketLink::deliver() {
  while (!failure_ && user_ != nullptr && !undelivered().empty()) {
    if (peer_ended_) {
      refuse(CloseCode::protocol_error, "data after its closing frame");
      break;
    }
    ConstBytes input = undelivered();
    const auto found = reader_.next(input);
    begin_ = end_ - input.size();
    if (found == FrameReader::Found::payload) {
      const auto progress = deliver_payload();
      if (progress != Delivery::going_on) return progress == Delivery::waiting;
    } else if (found == FrameReader::Found::ping) {
      take_ping();
    } else if (found == FrameReader::Found::close) {
      take_close();
    } else if (found == FrameReader::Found::violation) {
      refuse(reader_.close_code(), reader_.violation());
    }
  }
  if (connection_) return tell_end();
  fail();
  return false;
}

WebSocketLink::Delivery WebSocketLink::deliver_payload() {
  const LinkUser* const asked = user_;
  std::span<const Bytes> parts;
  if (!survives([&](LinkUser& user) { parts = user.to_receive(); })) return Delivery::destroyed;
  if (user_ != asked) return Delivery::going_on;
  ConstBytes input = undelivered();
  std::size_t bytes = 0;
  for (const Bytes part : parts) bytes += reader_.take_payload(input, part);
  begin_ = end_ - input.size();
  if (bytes == 0) return Delivery::waiting;
  return survives([&](LinkUser& user) { user.received(bytes); }) ? Delivery::going_on : Delivery::destroyed;
}

void WebSocketLink::take_ping() {
  const ConstBytes payload = reader_.control_payload();
  if (close_queued_) return;
  if (control_bytes_ + payload.size() > limits_.max_control_bytes) return refuse(CloseCode::policy, "more pings than it takes answers to");
  queue_control(kPongOpcode, payload);
}

void WebSocketLink::take_close() {
  peer_ended_ = true;
  if (close_sent_) connection_->finish_sending();
}

/// Tells the user that the peer's direction has ended. Returns false if the user has destroyed this link.
bool WebSocketLink::tell_end() {
  // A user that is finishing may destroy the link when it learns of the end, so its own bytes are sent first.
  const bool held_back = finish_requested_ && !close_sent_;
  if (!peer_ended_ || end_told_ || held_back || user_ == nullptr || failure_) return true;
  end_told_ = true;
  return survives([](LinkUser& user) { user.receive_ended(); });
}

void WebSocketLink::receive_ended() {
  if (failure_) return fail();
  if (peer_ended_) return;
  if (!reader_.between_messages()) {
    failure_ = Status(Errc::peer_lost, "the WebSocket of " + peer_name_ + " ended in the middle of a message");
    return fail();
  }
  peer_ended_ = true;
  tell_end();
}

void WebSocketLink::link_failed(const Status& status) {
  if (!failure_) failure_ = status;
  fail();
}

// --- sending ---

std::span<const ConstBytes> WebSocketLink::to_send() {
  if (owned_sent_ < owned_.size()) return offer_owned();
  if (failure_ || close_queued_ || user_ == nullptr) return {};
  woken_ = false;
  const LinkUser* const asked = user_;
  std::span<const ConstBytes> parts;
  if (!survives([&](LinkUser& user) { parts = user.to_send(); }) || user_ != asked) return {};
  if (offer_frame(parts)) return parts_;
  if (!finish_requested_ || woken_) return {};
  queue_close(peer_ended_ ? reader_.close_code() : CloseCode::normal);
  return offer_owned();
}

std::span<const ConstBytes> WebSocketLink::offer_owned() {
  offered_ = 0;
  parts_.assign(1, ConstBytes(owned_).subspan(owned_sent_));
  return parts_;
}

/// Makes a frame of the parts, up to the size that one message may have. Returns false if the parts are empty.
bool WebSocketLink::offer_frame(std::span<const ConstBytes> parts) {
  parts_.assign(1, ConstBytes{});
  offered_ = 0;
  for (const ConstBytes part : parts) {
    const ConstBytes taken = part.first(std::min(part.size(), limits_.max_sent_bytes - offered_));
    if (!taken.empty()) parts_.push_back(taken);
    offered_ += taken.size();
  }
  head_size_ = write_head(kBinaryOpcode, offered_, head_);
  parts_[0] = ConstBytes(head_).first(head_size_);
  return offered_ > 0;
}

void WebSocketLink::sent(std::size_t bytes) {
  if (offered_ == 0)
    owned_sent(bytes);
  else
    frame_sent(bytes);
}

void WebSocketLink::frame_sent(std::size_t bytes) {
  // The head has announced the whole message, but the user may change the parts that have not been sent, so they are copied.
  for (const ConstBytes part : parts_) {
    const std::size_t left = std::min(bytes, part.size());
    owned_.insert(owned_.end(), part.begin() + static_cast<std::ptrdiff_t>(left), part.end());
    bytes -= left;
  }
  const std::size_t payload = std::exchange(offered_, 0);
  survives([&](LinkUser& user) { user.sent(payload); });
}

void WebSocketLink::owned_sent(std::size_t bytes) {
  owned_sent_ += bytes;
  if (owned_sent_ < owned_.size()) return;
  owned_.clear();
  owned_sent_ = control_bytes_ = 0;
  if (!close_queued_) return;
  close_sent_ = true;
  if (failure_ || peer_ended_) connection_->finish_sending();
  tell_end();
}

void WebSocketLink::queue_control(std::uint8_t opcode, ConstBytes payload) {
  std::array<std::byte, 10> head;
  const std::size_t head_size = write_head(opcode, payload.size(), head);
  owned_.insert(owned_.end(), head.begin(), head.begin() + static_cast<std::ptrdiff_t>(head_size));
  owned_.insert(owned_.end(), payload.begin(), payload.end());
  control_bytes_ += head_size + payload.size();
  connection_->wake();
}

void WebSocketLink::queue_close(CloseCode code) {
  close_queued_ = true;
  const auto number = static_cast<unsigned>(code);
  const std::array payload{std::byte(number >> 8), std::byte(number & 0xffU)};
  queue_control(kCloseOpcode, ConstBytes(payload).first(code == CloseCode::none ? 0 : payload.size()));
}

// --- failing ---

/// Sends the reason to the peer, gives it some time to read it, and then tells the user.
void WebSocketLink::refuse(CloseCode code, const std::string& what) {
  failure_ = Status(Errc::protocol_error, peer_name_ + " broke the WebSocket protocol: it sent " + what);
  begin_ = end_ = 0;
  if (close_sent_)
    connection_->finish_sending();
  else if (!close_queued_)
    queue_close(code);
  close_timer_ = loop_.after(limits_.close_timeout, [this] {
    close_timer_ = 0;
    fail();
  });
}

void WebSocketLink::fail() {
  loop_.cancel(std::exchange(close_timer_, 0));
  connection_.reset();
  if (user_ == nullptr) return;
  // The user may destroy this link and read the status after that.
  const Status failure = *failure_;
  std::exchange(user_, nullptr)->link_failed(failure);
}

}  // namespace ringlet::web
