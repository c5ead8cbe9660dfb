#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/engine/early_budget.hpp"
#include "core/engine/payload_sink.hpp"
#include "core/engine/tasks.hpp"
#include "core/wire/frame.hpp"

namespace ringlet {

class PeerMessages;

/// A receive that its caller has posted.
class IncomingMessage final : public PayloadSink {
 public:
  IncomingMessage(PeerMessages& peer, std::uint64_t sequence, MessageTask task);

  Status begin_frame(const FrameHeader& header) const;
  void take(ConstBytes bytes);
  /// Completes the message if all its bytes have come, which destroys this object.
  void finish_if_done();

  Bytes direct() override { return task_.destination.subspan(offset_); }
  void received_direct(std::size_t count) override { offset_ += count; }
  std::size_t consume(ConstBytes bytes) override;
  void frame_ended() override { finish_if_done(); }

  /// The message that was offered fits this receive and has been accepted.
  void set_matched() { matched_ = true; }
  bool matched() const { return matched_; }
  Instant deadline() const { return deadline_; }
  std::size_t bytes_done() const { return offset_; }
  const MessageTask& task() const { return task_; }
  Completion take_completion() { return std::move(task_.completion); }

 private:
  MessageTask task_;
  PeerMessages& peer_;
  const std::uint64_t sequence_;
  const Instant deadline_;
  bool matched_ = false;
  std::size_t offset_ = 0;
};

/// A message that was offered before its receive was posted, or that was refused while its bytes are still coming.
class EarlyMessage final : public BufferedSink {
 public:
  /// `cost` has been counted as kept for the peer; it is released with the message, or before.
  EarlyMessage(PeerMessages& peer, std::uint64_t sequence, const MessageShape& shape, bool eager, const EarlyCost& cost)
      : shape_(shape), eager_(eager), peer_(peer), sequence_(sequence), kept_(cost) {}
  ~EarlyMessage() { release(); }
  EarlyMessage(const EarlyMessage&) = delete;

  Status begin_frame(const FrameHeader& header);
  std::size_t consume(ConstBytes bytes) override;
  void frame_ended() override;

  /// Discards the message's bytes, including those still to come. Returns whether none are still to come.
  bool refuse();
  /// The message no longer counts as kept for the peer.
  void release();
  const MessageShape& shape() const { return shape_; }
  bool in_frame() const { return in_frame_; }
  ConstBytes bytes() const { return bytes_; }

 private:
  const MessageShape shape_;
  const bool eager_;
  PeerMessages& peer_;
  const std::uint64_t sequence_;
  std::vector<std::byte> bytes_;
  std::size_t received_ = 0;
  EarlyCost kept_;
  bool in_frame_ = false;  // the session holds a pointer to this
  bool refused_ = false;
};

}  // namespace ringlet
