#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/ports/event_loop.hpp"
#include "core/ports/link.hpp"
#include "tools/job/message_channel.hpp"

namespace ringlet::job {

/// How often each side says that it is there. A program that is stopped says nothing, too.
inline constexpr Duration kBeatInterval = Duration::seconds(2);

struct MessageLinkLimits {
  std::size_t max_message_bytes = 0;
  Duration max_silence{};         // after it the other end is given up
  Duration max_silence_at_end{};  // the same after expect_end()
};
inline constexpr MessageLinkLimits kAgentLimits{1 << 20, Duration::seconds(20), Duration::seconds(20)};
inline constexpr MessageLinkLimits kPipeLimits{std::size_t{16} << 20, Duration::seconds(60), Duration::seconds(6)};

/// A channel on a link: an authenticated connection, or the pipes of ssh.
class MessageLink final : public MessageChannel, private LinkUser {
 public:
  MessageLink(EventLoop& loop, std::unique_ptr<Link> link, MessageLinkLimits limits);
  ~MessageLink() override;
  MessageLink(const MessageLink&) = delete;
  MessageLink& operator=(const MessageLink&) = delete;

  void start(OnMessage on_message, OnLost on_lost) override;
  void send(const Message& message) override;
  std::size_t unsent_bytes() const override { return unsent_bytes_; }
  void expect_end() override { limits_.max_silence = limits_.max_silence_at_end; }
  std::string peer_name() const override { return link_->peer_name(); }
  LinkBinding binding() const override { return link_->binding(); }

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
  MessageLinkLimits limits_;
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

}  // namespace ringlet::job
