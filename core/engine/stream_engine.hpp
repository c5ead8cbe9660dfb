#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/engine/early_arrivals.hpp"
#include "core/engine/lane.hpp"
#include "core/engine/pending.hpp"
#include "core/engine/running_plan.hpp"

namespace ringlet {

/// The collectives of one stream: started one after the other, in the order of the calls, numbered from 0. Runs the plan of the one that
/// has its turn over the sessions, a lane to each peer; from the second run of the same shape on that allocates nothing.
class StreamEngine {
 public:
  StreamEngine(std::uint16_t id, GroupContext& group);
  /// No frame of an operation may be on its way.
  ~StreamEngine();
  StreamEngine(const StreamEngine&) = delete;
  StreamEngine& operator=(const StreamEngine&) = delete;

  /// The task's buffers are borrowed until its completion.
  void add(CollectiveTask task);
  /// Ends every operation with `status`. Sessions must have dropped their sources before.
  void fail_all(const Status& status);
  bool idle() const { return !running_ && waiting_.empty(); }

  // From peers. A null sink: the world has failed.
  PayloadSink* on_call(int peer, const FrameHeader& header);
  PayloadSink* on_data(int peer, const FrameHeader& header);
  /// The peer takes no part any more. Ends the world if the running operation still needs it.
  void on_peer_left(int peer);
  /// From lanes: more has come, or has left. Runs what can be computed now, and wakes the lanes that can send it.
  void advance();

  /// The running operation, if one runs; the caller fills the group in.
  std::optional<Pending> pending() const;
  /// The running operation's deadline has passed.
  bool overdue(Instant now) const { return running_ && now >= deadline_; }
  /// `timed_out` of the running operation. `late`: the rank that holds it up, if another than it waits for itself, and what that one does.
  Status timeout(int late, const std::string& what_it_does) const;
  /// How many operations this rank has called, and how many of them have ended.
  ///@{
  std::uint64_t called() const { return sequence_ + (running_ ? 1 : 0) + waiting_.size(); }
  std::uint64_t ended() const { return sequence_; }
  ///@}
  /// For RankState messages, of the operation that the stream is in; there is one.
  wire::OperationState state(Instant now) const;
  void add_to(wire::RankState& rank, Instant now) const;

 private:
  class CallSink;

  void start_next();
  void start_lanes();
  void take_early();
  void take_early_frames(int peer);
  void on_early_frame_ended(int peer, std::uint64_t sequence);
  void on_call_decoded(int peer, std::uint64_t sequence, const Call& call);
  void compare(int peer, std::uint64_t sequence, const Call& theirs, const Call& ours);
  bool sends_have_left() const;
  void finish();

  Lane& lane(int peer) { return lanes_[static_cast<std::size_t>(peer)]; }
  const Lane& lane(int peer) const { return lanes_[static_cast<std::size_t>(peer)]; }
  /// Null where the running operation has no steps with that peer.
  Lane* find_lane(int peer);
  const Call& past_call(std::uint64_t sequence) const { return history_[sequence % history_.size()]; }

  /// One of the ranks that the running operation waits for: rather one that has not called, then one whose bytes are missing. -1: none.
  int awaited() const;
  /// "waiting for rank 2 (has not called it), rank 3 (sent 40 of 100 bytes)".
  std::string waiting_text() const;
  void add_progress_to(wire::OperationState& state) const;

  const std::uint16_t id_;
  GroupContext& group_;
  RunningPlan plan_;
  std::vector<std::byte> records_;  // the call as each peer is told it, or once for all
  // By rank, and they stand still: a session may still have a lane in its queue when the next operation begins.
  std::deque<Lane> lanes_;
  std::deque<CollectiveTask> waiting_;
  CollectiveTask current_{};
  bool running_ = false;
  bool start_deferred_ = false;
  std::uint64_t sequence_ = 0;  // of the running operation, or of the next one
  Instant deadline_{};
  Instant ended_at_{};         // of the last operation that has
  std::vector<Call> history_;  // the last finished calls, each at its sequence modulo the size: as many as the window lets a rank be ahead
  EarlyArrivals early_;
  std::vector<std::unique_ptr<CallSink>> call_sinks_;
  AliveGuard guard_;
};

}  // namespace ringlet
