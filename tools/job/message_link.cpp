#include "tools/job/message_link.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/wire/frame.hpp"

namespace ringlet::job {

namespace {

constexpr std::size_t kMaxSendParts = 16;

}  // namespace

MessageLink::MessageLink(EventLoop& loop, std::unique_ptr<Link> link, MessageLinkLimits limits)
    : loop_(loop), link_(std::move(link)), limits_(limits) {}

MessageLink::~MessageLink() { loop_.cancel(timer_); }

void MessageLink::start(OnMessage on_message, OnLost on_lost) {
  on_message_ = std::move(on_message);
  on_lost_ = std::move(on_lost);
  last_heard_ = loop_.now();
  timer_ = loop_.after(kBeatInterval, [this] { beat(); });
  link_->start(*this);
  link_->wake();
}

void MessageLink::send(const Message& message) {
  if (lost_) return;
  std::string bytes(length_.size(), '\0');
  bytes += encode(message);
  RINGLET_CHECK(bytes.size() - length_.size() <= limits_.max_message_bytes);
  detail::store_le(reinterpret_cast<std::byte*>(bytes.data()), static_cast<std::uint32_t>(bytes.size() - length_.size()));
  unsent_bytes_ += bytes.size();
  outgoing_.push_back(std::move(bytes));
  link_->wake();
}

std::span<const ConstBytes> MessageLink::to_send() {
  send_parts_.clear();
  for (const std::string& bytes : outgoing_) {
    if (send_parts_.size() == kMaxSendParts) break;
    send_parts_.push_back(std::as_bytes(std::span(bytes)).subspan(send_parts_.empty() ? sent_bytes_ : 0));
  }
  return send_parts_;
}

void MessageLink::sent(std::size_t bytes) {
  sent_bytes_ += bytes;
  unsent_bytes_ -= bytes;
  while (!outgoing_.empty() && sent_bytes_ >= outgoing_.front().size()) {
    sent_bytes_ -= outgoing_.front().size();
    outgoing_.pop_front();
  }
}

std::span<const Bytes> MessageLink::to_receive() {
  if (lost_) return {};
  receive_part_ = (in_body_ ? Bytes(body_) : Bytes(length_)).subspan(received_bytes_);
  return {&receive_part_, 1};
}

void MessageLink::received(std::size_t bytes) {
  last_heard_ = loop_.now();
  received_bytes_ += bytes;
  if (in_body_) {
    if (received_bytes_ == body_.size()) on_body();
  } else if (received_bytes_ == length_.size()) {
    on_length();
  }
}

void MessageLink::on_length() {
  const auto length = detail::load_le<std::uint32_t>(length_.data());
  if (length == 0 || length > limits_.max_message_bytes)
    return lose({Errc::protocol_error, "it announced a message of " + std::to_string(length) + " bytes"});
  body_.resize(length);
  received_bytes_ = 0;
  in_body_ = true;
}

void MessageLink::on_body() {
  std::optional<Message> message = decode(body_);
  received_bytes_ = 0;
  in_body_ = false;
  if (!message) return lose({Errc::protocol_error, "it sent bytes that are no message"});
  if (std::holds_alternative<Beat>(*message)) return;
  // The callback may destroy this object, and the function with it.
  const OnMessage on_message = on_message_;
  on_message(std::move(*message));
}

void MessageLink::beat() {
  if (lost_) return;
  const Duration silence = loop_.now() - last_heard_;
  if (silence >= limits_.max_silence)
    return lose({Errc::timed_out, "it has been silent for " + std::to_string(silence.whole_milliseconds() / 1000) + " s"});
  // A peer that takes nothing gets no more to keep.
  if (outgoing_.empty()) send(Beat{});
  timer_ = loop_.after(kBeatInterval, [this] { beat(); });
}

void MessageLink::lose(const Status& status) {
  if (std::exchange(lost_, true)) return;
  const OnLost on_lost = on_lost_;
  on_lost(status);
}

}  // namespace ringlet::job
