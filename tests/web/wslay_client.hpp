#pragma once

#include <wslay/wslay.h>

#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/ports/event_loop.hpp"
#include "core/ports/link.hpp"

namespace ringlet::test {

/// The client's end of a WebSocket as a link. wslay frames its messages, so that the tested code meets another implementation. It cuts
/// messages into fragments and sends pings between them, at random.
class WslayClient final : public Link, private LinkUser {
 public:
  /// `received_bytes` are those that came behind the server's answer to the upgrade.
  WslayClient(EventLoop& loop, std::unique_ptr<Link> connection, ConstBytes received_bytes, unsigned seed);
  ~WslayClient() override;

  void start(LinkUser& user) override;
  void wake() override;
  void finish_sending() override;
  std::string peer_name() const override { return peer_name_; }

 private:
  struct FreeContext {
    void operator()(wslay_frame_context* context) const { wslay_frame_context_free(context); }
  };

  std::span<const ConstBytes> to_send() override;
  void sent(std::size_t bytes) override;
  std::span<const Bytes> to_receive() override;
  void received(std::size_t bytes) override;
  void receive_ended() override;
  void link_failed(const Status& status) override;

  void write_frame(std::uint8_t opcode, bool fin, ConstBytes payload);
  std::size_t write_message(std::span<const ConstBytes> parts);
  void decode();
  bool deliver();
  void deliver_later();
  template <class Call>
  bool survives(Call call);

  EventLoop& loop_;
  const std::string peer_name_;
  std::mt19937 random_;
  std::unique_ptr<wslay_frame_context, FreeContext> context_;
  LinkUser* user_ = nullptr;
  bool* destroyed_ = nullptr;
  TimerId delivery_ = 0;
  std::vector<std::byte> encoded_in_;   // from the server, not yet decoded
  std::vector<std::byte> decoded_;      // for the user, while it has no room
  std::vector<std::byte> encoded_out_;  // for the server
  std::size_t out_sent_ = 0;
  std::array<std::byte, 5000> buffer_;
  Bytes room_;
  ConstBytes offered_;
  bool woken_ = false, finish_requested_ = false, close_queued_ = false, ended_ = false, end_told_ = false;
  std::unique_ptr<Link> connection_;
};

}  // namespace ringlet::test
