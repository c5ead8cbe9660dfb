#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ports/event_loop.hpp"
#include "core/ports/link.hpp"
#include "tools/agent/messages.hpp"

namespace ringlet::agent {

/// How often each side says that it is there, and after how long a silence the other is given up. A stopped program says nothing, too.
inline constexpr Duration kBetweenBeats = Duration::seconds(2);
inline constexpr Duration kLongestSilence = Duration::seconds(20);

/// A conversation of messages on an authenticated link. Belongs to the loop's thread; it may be destroyed inside its callbacks, which drops
/// what was not sent.
class MessageLink final : private LinkUser {
 public:
  using OnMessage = std::function<void(Message)>;
  /// The other end is gone: it closed the link, the link broke, it was silent for too long, or it sent what is no message. At most once; no
  /// message comes after it.
  using OnLost = std::function<void(const Status&)>;

  /// Starts the link. Beats come and go by themselves and are not handed on.
  MessageLink(EventLoop& loop, std::unique_ptr<Link> link, OnMessage on_message, OnLost on_lost);
  ~MessageLink();
  MessageLink(const MessageLink&) = delete;
  MessageLink& operator=(const MessageLink&) = delete;

  /// Does nothing once the other end is gone.
  void send(const Message& message);
  /// What send() was given and the other end has not taken.
  std::size_t unsent_bytes() const { return unsent_bytes_; }
  std::string peer_name() const { return link_->peer_name(); }

 private:
  std::span<const ConstBytes> to_send() override;
  void sent(std::size_t bytes) override;
  std::span<const Bytes> to_receive() override;
  void received(std::size_t bytes) override;
  void receive_ended() override { lose({Errc::peer_lost, "it closed the connection"}); }
  void link_failed(const Status& status) override { lose(status); }
  void on_length();
  void on_body();
  void beat();
  void lose(const Status& status);

  EventLoop& loop_;
  std::unique_ptr<Link> link_;
  OnMessage on_message_;
  OnLost on_lost_;
  std::deque<std::string> outgoing_;  // each with its length in front
  std::size_t sent_bytes_ = 0;        // of the first
  std::size_t unsent_bytes_ = 0;
  std::vector<ConstBytes> send_parts_;
  std::array<std::byte, 4> length_{};
  std::vector<std::byte> body_;
  std::size_t received_bytes_ = 0;  // of the length, then of the body
  bool in_body_ = false;
  bool lost_ = false;
  Bytes receive_part_;
  Instant last_heard_;
  TimerId timer_ = 0;
};

}  // namespace ringlet::agent
