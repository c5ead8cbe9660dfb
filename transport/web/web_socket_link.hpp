#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/ports/event_loop.hpp"
#include "core/ports/link.hpp"
#include "core/wire/frame.hpp"
#include "transport/web/frame_reader.hpp"

namespace ringlet::web {

struct WebSocketLimits {
  std::uint64_t max_message_bytes = 64 << 20;
  /// The maximum length of a binary message that is sent: a segment with its header, because browsers hand over whole messages only.
  std::size_t max_sent_bytes = (256 << 10) + kFrameHeaderBytes;
  /// How many bytes of pongs may wait for a peer that does not read them.
  std::size_t max_control_bytes = 8 << 10;
  /// How long a peer that broke the protocol may take to read the reason.
  Duration close_timeout = Duration::seconds(1);
};

/// The server's end of a WebSocket, after the upgrade, as a link: it carries the bytes of binary messages in their order; the boundaries
/// between messages mean nothing. A peer that breaks RFC 6455 or sends text gets a closing frame with the code; then the user gets
/// link_failed(). finish_sending() sends a closing frame, too. A closing frame from the peer, or the end of the connection between two
/// messages, becomes receive_ended(). If the connection has taken a part of a message, the rest is copied here, at most `max_sent_bytes`,
/// and sent() reports the whole message; the copy is lost if the link is destroyed then.
class WebSocketLink final : public Link, private LinkUser {
 public:
  /// Takes over a connection from which no byte of a frame has been received yet. Reads nothing before start().
  WebSocketLink(EventLoop& loop, std::unique_ptr<Link> connection, const WebSocketLimits& limits = {});
  ~WebSocketLink() override;

  void start(LinkUser& user) override;
  void wake() override;
  void finish_sending() override;
  std::string peer_name() const override { return peer_name_; }

 private:
  std::span<const ConstBytes> to_send() override;
  void sent(std::size_t bytes) override;
  std::span<const Bytes> to_receive() override;
  void received(std::size_t bytes) override;
  void receive_ended() override;
  void link_failed(const Status& status) override;

  enum class Delivery : std::uint8_t { going_on, waiting, destroyed };

  template <class Call>
  bool survives(Call call);
  void deliver_later();
  bool deliver();
  Delivery deliver_payload();
  void take_ping();
  void take_close();
  bool tell_end();
  bool offer_frame(std::span<const ConstBytes> parts);
  std::span<const ConstBytes> offer_owned();
  void frame_sent(std::size_t bytes);
  void owned_sent(std::size_t bytes);
  void queue_control(std::uint8_t opcode, ConstBytes payload);
  void queue_close(CloseCode code);
  void refuse(CloseCode code, const std::string& what);
  void fail();
  ConstBytes undelivered() const { return ConstBytes(buffer_).subspan(begin_, end_ - begin_); }

  EventLoop& loop_;
  const WebSocketLimits limits_;
  const std::string peer_name_;
  LinkUser* user_ = nullptr;
  AliveGuard guard_;

  FrameReader reader_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // the bytes of buffer_ that the user has not received yet
  Bytes room_;                       // returned by to_receive()
  TimerId delivery_ = 0;

  std::array<std::byte, 10> head_{};  // of the frame that is offered to the connection
  std::size_t head_size_ = 0;
  std::vector<ConstBytes> parts_;
  std::size_t offered_ = 0;       // payload bytes of the frame that is offered; 0 while `owned_` is sent
  std::vector<std::byte> owned_;  // sent before anything else: the rest of a frame, then control frames
  std::size_t owned_sent_ = 0;
  std::size_t control_bytes_ = 0;  // how many bytes of `owned_` are control frames

  bool woken_ = false;  // wake() was called since to_send() was last called
  bool finish_requested_ = false;
  bool close_queued_ = false;
  bool close_sent_ = false;
  bool peer_ended_ = false;
  bool end_told_ = false;
  std::optional<Status> failure_;  // told to the user once the peer was told, or cannot be
  TimerId close_timer_ = 0;
  std::unique_ptr<Link> connection_;  // null once all that is left is to tell the user of the failure
};

}  // namespace ringlet::web
