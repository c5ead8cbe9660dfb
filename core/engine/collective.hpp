#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/engine/eager_window.hpp"
#include "core/engine/group_context.hpp"
#include "core/engine/tasks.hpp"
#include "core/plan/plan.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// Runs one plan at a time over the sessions. Used again and again: from the second run of the same shape on it allocates nothing.
class Collective {
 public:
  /// `on_finished` runs once per start(), when every step has been done.
  Collective(GroupContext& group, std::function<void()> on_finished);
  /// No frame of an operation may be on its way.
  ~Collective();
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  /// Computes the plan and begins. The task's buffers are borrowed until on_finished, which may run inside, or cancel().
  void start(std::uint16_t stream, std::uint64_t sequence, const CollectiveTask& task);
  /// Forgets the buffers. Sessions must have dropped their sources before.
  void cancel();

  /// The peer's call of this operation, equal to ours, has come: it has started, all may be sent.
  void on_call(int peer);
  bool has_called(int peer) const;
  /// Where the payload of this frame goes; a status where the frame is not the next one of that peer.
  Result<PayloadSink*> on_data(int peer, const FrameHeader& header);
  /// Takes a whole data frame that came before the start.
  Status on_early_data(int peer, const FrameHeader& header, ConstBytes payload);
  /// The peer's call of an earlier operation, which has ended here, has come: it no longer counts as ahead of the peer.
  void on_call_of_ended(int peer, std::uint64_t sequence);
  /// The peer has left the world; its session's sources have been dropped. False if this operation still needs it.
  bool on_peer_left_world(int peer);
  /// The peer has called this operation and sent its part, or has none in it: what is left goes to it without its help.
  bool has_all_of(int peer) const;
  /// "waiting for rank 2 (has not called it), rank 3 (sent 40 of 100 bytes)".
  std::string waiting_for() const;
  /// One of these ranks: rather one that has not called, then one whose bytes are missing. -1: none.
  int waits_for() const;
  /// How many bytes have come and gone, of how many, and for which ranks it waits, waits_for() first.
  void describe_progress(wire::OperationState& state) const;
  /// Whether that rank, for which this one waits, has perhaps started and waits for another.
  bool may_wait_itself(int peer) const;

 private:
  class Lane;
  friend class Lane;

  struct Progress {
    std::size_t bytes = 0;
    bool done = false;
  };

  std::byte* writable(const Region& region) const;
  const std::byte* readable(const Region& region) const;
  Progress progress(ProgressIndex index) const;
  Lane& lane(int peer) { return lanes_[static_cast<std::size_t>(peer)]; }
  const Lane& lane(int peer) const { return lanes_[static_cast<std::size_t>(peer)]; }
  /// Null where the running plan has no steps with that peer.
  Lane* find_lane(int peer);
  const Lane* find_lane(int peer) const;
  void start_lanes();
  void advance();
  /// As far as its operands have come; true when it is done.
  bool run_combine(std::size_t index);
  void combine_block(const Combine& combine, std::size_t offset, std::size_t bytes);
  void finish_piece(std::byte* data, std::size_t count) const;
  bool sends_have_left() const;
  std::size_t element_bytes() const { return size_of(call_.dtype); }

  GroupContext& group_;
  const std::function<void()> on_finished_;
  std::vector<EagerWindow> windows_;  // by rank
  Plan plan_;
  Call call_{};
  std::vector<std::byte> records_;  // the call as each peer is told it, or once for all
  std::uint16_t stream_ = 0;
  std::uint64_t sequence_ = 0;
  ConstBytes input_;
  Bytes output_;
  std::vector<std::byte> scratch_;
  std::vector<Progress> progress_;
  std::size_t combined_ = 0;  // combines that are done
  // By rank, and they stand still: a session may still have a lane in its queue when the next operation begins.
  std::deque<Lane> lanes_;
  bool running_ = false;
  simd::ReduceFn reduce_ = nullptr;
  simd::ScaleFn divide_ = nullptr;
  simd::MapFn canonical_nan_ = nullptr;
};

/// One peer's part of the running plan.
class Collective::Lane final : public FrameSource, public PayloadSink {
 public:
  explicit Lane(Collective& collective) : collective_(collective) {}

  /// What the peer is told of the call stands in the collective's records.
  void start(const PeerSteps& steps, std::size_t call_offset, std::size_t call_bytes);
  /// Of the operation that this lane last took part in.
  std::uint64_t sequence() const { return sequence_; }
  bool called() const { return called_; }
  bool may_wait_itself() const { return called_ || steps_.call_with_first_send; }
  void on_call();
  Status begin_frame(const FrameHeader& header);
  void wake_if_sendable();
  bool sends_left() const { return absolved_ || (call_given_ && data_left()); }
  /// Nothing more has to go to a peer that has left: it was told all it needed. False if it was not.
  bool absolve();
  /// Takes the lane out of its session's queue.
  void withdraw();
  bool receives_done() const { return next_receive_ == steps_.receive_count; }
  std::size_t received_bytes() const;
  std::size_t expected_bytes() const;
  std::size_t sent_bytes() const;
  std::size_t bytes_to_send() const;
  void leave_window();

  std::optional<OutgoingFrame> next_frame() override;
  void frame_sent(const FrameHeader& header) override;
  Bytes direct() override;
  void received_direct(std::size_t count) override;
  std::size_t consume(ConstBytes bytes) override;
  void frame_ended() override;

 private:
  /// Bytes that may leave now in one frame; nothing if none. An empty transfer is 0 bytes.
  std::optional<std::size_t> sendable() const;
  bool data_left() const { return next_send_ == steps_.send_count && frames_out_ == 0; }
  const Receive& current_receive() const;
  void received_piece(std::size_t bytes);

  Collective& collective_;
  /// What the call costs in the eager window.
  std::size_t call_cost() const { return EagerWindow::kOperationBytes + call_bytes_ - kCallRecordBytes; }

  PeerSteps steps_{};
  std::size_t call_offset_ = 0, call_bytes_ = 0;
  std::uint64_t sequence_ = UINT64_MAX;
  Session* session_ = nullptr;
  EagerWindow* window_ = nullptr;
  bool called_ = false;      // the peer has started too
  bool call_given_ = false;  // our call frame is on its way
  bool absolved_ = false;    // the peer has left and needs nothing any more
  std::size_t eager_taken_ = 0;
  std::uint32_t next_send_ = 0;
  std::size_t send_offset_ = 0;
  std::uint32_t frames_out_ = 0;
  std::uint32_t next_receive_ = 0;
  std::size_t receive_offset_ = 0;
};

}  // namespace ringlet
