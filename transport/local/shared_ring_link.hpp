#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/alive_guard.hpp"
#include "core/ports/link.hpp"
#include "core/ports/poll_source.hpp"
#include "core/ports/shortcut.hpp"
#include "transport/local/ring_memory.hpp"

namespace ringlet::local {

/// A link between two processes of one machine, whose bytes go through a ring in shared memory for each direction. While both sides poll,
/// no system call is made. A side that blocks says so in the shared memory first; the other one then sends a byte over the inner link,
/// which also tells when the peer is gone. Both ends must have one.
///
/// What the peer writes into the shared memory is not trusted: positions are checked, and bytes are copied out before anything reads them.
class SharedRingLink final : public Link, private LinkUser, private PollSource {
 public:
  /// `sources` is the loop of `inner`, and outlives the link. `memory` was made by the dialler; both sides have written their words into
  /// it.
  SharedRingLink(std::unique_ptr<Link> inner, std::unique_ptr<SharedMemory> memory, LinkSide side, PollSources& sources);
  ~SharedRingLink();
  SharedRingLink(const SharedRingLink&) = delete;
  SharedRingLink& operator=(const SharedRingLink&) = delete;

  void start(LinkUser& user) override;
  void wake() override;
  void finish_sending() override;
  std::string peer_name() const override { return peer_name_; }
  std::string own_name() const override { return inner_ ? inner_->own_name() : std::string(); }
  std::string_view medium() const override { return "memory"; }

 private:
  // Calls of the inner link.
  std::span<const ConstBytes> to_send() override;
  void sent(std::size_t bytes) override;
  std::span<const Bytes> to_receive() override;
  void received(std::size_t bytes) override;
  void receive_ended() override;
  void link_failed(const Status& status) override;

  // Calls of the loop.
  bool poll() override;
  bool prepare_to_block() override;
  void awake() override;

  /// What became of an attempt to move bytes: it may have destroyed this object, or ended it by a failure.
  enum class Moved { none, some, gone };

  /// Whether there is something to send that the peer will never read.
  bool waits_in_vain() const { return waits_for_room_ && inner_ended_ && peer_ended_; }
  bool bytes_wait() const { return incoming_.written.load(std::memory_order_acquire) != read_; }
  std::size_t room() const { return kRingBytes - static_cast<std::size_t>(written_ - outgoing_.read.load(std::memory_order_acquire)); }
  Moved receive();
  Moved send();
  std::size_t put(std::span<const ConstBytes> parts, std::size_t room);
  std::size_t take(std::span<const Bytes> parts, std::size_t bytes);
  void tell_peer(Awaits what);
  Moved end_of_peer();
  void end_if_both_have();
  Moved fail(const Status& status);
  Moved fail_as_closed();

  std::unique_ptr<Link> inner_;
  const std::unique_ptr<SharedMemory> memory_;
  RingHead& incoming_;
  RingHead& outgoing_;
  std::atomic<std::uint32_t>& own_awaits_;
  std::atomic<std::uint32_t>& peer_awaits_;
  const std::byte* const incoming_bytes_;
  std::byte* const outgoing_bytes_;
  PollSources& sources_;
  const std::string peer_name_;
  LinkUser* user_ = nullptr;  // null before start() and after the last call
  bool started_ = false;
  AliveGuard guard_;  // ended on destruction and on failure

  // sending
  std::uint64_t written_ = 0;
  bool sending_ = false;  // inside send()
  bool woken_ = false;    // since the user was asked last
  bool waits_for_room_ = false;
  bool finish_requested_ = false;
  bool end_sent_ = false;
  ConstBytes bell_{};  // a byte that wakes the peer and has not left yet

  // receiving
  std::uint64_t read_ = 0;
  bool stopped_ = false;  // the user had no room
  bool peer_ended_ = false;
  bool inner_ended_ = false;
  bool inner_failed_ = false;  // behind both ends
  std::array<std::byte, 64> rung_{};
  Bytes rung_room_{rung_};
};

}  // namespace ringlet::local
