#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/ports/event_loop.hpp"
#include "core/ports/link.hpp"

namespace ringlet {

/// Passes bytes on between two links, with a buffer for each direction: a side that sends faster than the other one receives has to wait.
/// When one side ends, the other one gets the bytes that had come, and then the end. Belongs to the loop's thread.
class Relay {
 public:
  static constexpr std::size_t kBufferBytes = 256 << 10;

  /// `on_over` runs once, from the loop, when both sides have ended; it may destroy the relay.
  Relay(EventLoop& loop, std::function<void()> on_over);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Attaches the link of side 0 or 1, once each. Bytes that come before the other link is attached wait.
  void attach(std::size_t side, std::unique_ptr<Link> link);
  /// Called when the link of this side will not come.
  void give_up(std::size_t side) { end(side); }

 private:
  /// A ring buffer of bytes that one side has received and the other one has not sent yet.
  class Buffer {
   public:
    std::span<const Bytes> room();
    void filled(std::size_t bytes) { used_ += bytes; }
    std::span<const ConstBytes> content();
    void drained(std::size_t bytes);
    void clear() { begin_ = used_ = 0; }
    bool full() const { return used_ == kBufferBytes; }
    bool empty() const { return used_ == 0; }

   private:
    std::vector<std::byte> bytes_ = std::vector<std::byte>(kBufferBytes);
    std::size_t begin_ = 0, used_ = 0;
    std::array<Bytes, 2> room_;
    std::array<ConstBytes, 2> content_;
  };
  class Side final : public LinkUser {
   public:
    std::span<const ConstBytes> to_send() override { return relay->sides_[1 - index].incoming.content(); }
    void sent(std::size_t bytes) override;
    std::span<const Bytes> to_receive() override;
    void received(std::size_t bytes) override;
    void receive_ended() override;
    void link_failed(const Status& status) override;

    Relay* relay = nullptr;
    std::size_t index = 0;
    std::unique_ptr<Link> link;
    Buffer incoming;
    bool ended = false;       // nothing more will come from it
    bool discarding = false;  // the other side is gone
  };

  void end(std::size_t side);
  void finish_if_over();

  EventLoop& loop_;
  std::function<void()> on_over_;
  std::array<Side, 2> sides_;
  AliveGuard guard_;
};

}  // namespace ringlet
