#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/engine/session.hpp"
#include "core/engine/tasks.hpp"

namespace ringlet {

class PeerMessages;

/// A message that is being sent. It begins with an offer of dtype and shape; the bytes follow at once if they are few, otherwise when the
/// receiver has accepted the offer.
class OutgoingMessage final : public FrameSource {
 public:
  OutgoingMessage(PeerMessages& peer, std::uint64_t sequence, MessageTask task);

  std::optional<OutgoingFrame> next_frame() override;
  void frame_sent(const FrameHeader& header) override;

  /// The receiver has accepted the message. If all its bytes have left, this completes it and destroys this object.
  void on_accept();
  /// The receiver has refused the message, because its receive has another dtype or shape. The message ends once the bytes that are under
  /// way have left.
  void on_refuse(Status status);

  bool awaits_answer() const { return offered_ && !answered(); }
  bool answered() const { return accepted_ || refused_; }
  bool refused() const { return refused_; }
  const Status& outcome() const { return outcome_; }
  Instant deadline() const { return deadline_; }
  std::size_t bytes_done() const { return offset_; }
  const MessageTask& task() const { return task_; }
  Completion take_completion() { return std::move(task_.completion); }

 private:
  void give_back();
  void finish_if_done();

  MessageTask task_;
  PeerMessages& peer_;
  const std::uint64_t sequence_;
  const MessageShapeRecord record_;
  const Instant deadline_;
  Status outcome_;
  bool eager_ = false;
  bool offered_ = false;
  bool accepted_ = false;
  bool refused_ = false;
  std::size_t offset_ = 0;
  std::uint32_t frames_out_ = 0;
};

}  // namespace ringlet
