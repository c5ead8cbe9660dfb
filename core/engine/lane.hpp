#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/engine/eager_window.hpp"
#include "core/engine/group_context.hpp"
#include "core/engine/running_plan.hpp"
#include "core/engine/session.hpp"

namespace ringlet {

class StreamEngine;

/// One peer's part of a collective. It makes the frames that go to the peer, and puts the data that comes from it where the plan says.
class Lane final : public FrameSource, public PayloadSink {
 public:
  /// No frame to or from the peer may be under way when the lane is destroyed.
  Lane(StreamEngine& engine, std::uint16_t stream, GroupContext& group, RunningPlan& plan, EagerWindow window)
      : engine_(engine), stream_(stream), group_(group), plan_(plan), window_(std::move(window)) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// Begins to take part in an operation of the stream. `call_record` is the encoded call that the peer is sent; it stays valid until the
  /// operation has ended.
  void start(const PeerSteps& steps, std::uint64_t sequence, ConstBytes call_record);
  /// The number of the operation that this lane last took part in.
  std::uint64_t sequence() const { return sequence_; }
  /// The operation has ended here. Bytes that were sent to a peer that has not called it yet keep counting as early.
  void end();
  /// Takes the lane out of its session's queue.
  void withdraw();

  /// The peer's call of this operation, equal to ours, has come.
  void on_call();
  bool called() const { return called_; }
  /// The peer's call of an earlier operation has come.
  void on_call_of_ended(std::uint64_t sequence) {
    if (session_ != nullptr) session_->give_back_early(window_.release(sequence));
  }
  /// What the peer may still have to keep for operations of this lane.
  const EarlyCost& early() const { return window_.taken(); }
  /// Whether the peer may have started the operation and may itself be waiting for another rank.
  bool may_wait_itself() const { return called_ || steps_.call_with_first_send; }
  Status begin_frame(const FrameHeader& header);
  void wake_if_sendable();
  /// Ends the lane's part in the operation after its peer has left. Returns false where data still has to be sent to or received from the
  /// peer.
  bool finish_without_peer();

  bool sends_left() const { return without_peer_ || (call_given_ && data_left()); }
  bool receives_done() const { return next_receive_ == steps_.receive_count; }
  bool done() const { return receives_done() && sends_left(); }
  std::size_t received_bytes() const;
  std::size_t bytes_to_receive() const;
  std::size_t sent_bytes() const;
  std::size_t bytes_to_send() const;

  std::optional<OutgoingFrame> next_frame() override;
  void frame_sent(const FrameHeader& header) override;
  Bytes direct() override;
  void received_direct(std::size_t count) override { received_piece(count); }
  std::size_t consume(ConstBytes bytes) override;
  void frame_ended() override;

 private:
  std::optional<OutgoingFrame> call_frame(FrameHeader header);
  /// The number of bytes that may leave now in one frame, or nothing where none may. An empty transfer has 0 bytes.
  std::optional<std::size_t> sendable() const;
  /// The number of bytes that one frame may have now, or nothing where the peer may be sent none before it has called the operation.
  std::optional<std::size_t> frame_room() const;
  EarlyCost call_cost() const { return {0, EarlyCost::kRecordBytes + call_record_.size() - kCallRecordBytes}; }
  void take_early(const EarlyCost& cost);
  bool data_left() const { return next_send_ == steps_.send_count && frames_out_ == 0; }
  const Send& send(std::uint32_t number) const { return plan_.steps().sends[steps_.first_send + number]; }
  const Receive& receive(std::uint32_t number) const { return plan_.steps().receives[steps_.first_receive + number]; }
  void received_piece(std::size_t bytes);

  StreamEngine& engine_;
  const std::uint16_t stream_;
  GroupContext& group_;
  RunningPlan& plan_;
  EagerWindow window_;

  PeerSteps steps_{};
  ConstBytes call_record_;
  std::uint64_t sequence_ = UINT64_MAX;
  Session* session_ = nullptr;
  bool called_ = false;        // the peer has started too
  bool call_given_ = false;    // our call frame is on its way
  bool without_peer_ = false;  // the peer has left and needs nothing any more
  EarlyCost early_;            // of this operation
  std::uint32_t next_send_ = 0;
  std::size_t send_offset_ = 0;
  std::uint32_t frames_out_ = 0;
  std::uint32_t next_receive_ = 0;
  std::size_t receive_offset_ = 0;
};

}  // namespace ringlet
