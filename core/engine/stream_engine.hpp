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

/// The collectives of one stream. They run one after the other in the order of the calls and are numbered from 0. The plan of the running
/// one is carried out over the sessions, with a lane for each peer; from the second run of the same shape on that allocates nothing.
class StreamEngine {
 public:
  StreamEngine(std::uint16_t id, GroupContext& group);
  /// No frame of an operation may be under way.
  ~StreamEngine();
  StreamEngine(const StreamEngine&) = delete;
  StreamEngine& operator=(const StreamEngine&) = delete;

  /// The task's buffers are borrowed until its completion.
  void add(CollectiveTask task);
  /// Starts what has waited while the group was held back.
  void go_on();
  /// The number of the first operation that has not started.
  std::uint64_t unstarted() const { return sequence_ + (running_ ? 1 : 0); }
  /// Ends every operation with `status`. Sessions must have dropped their sources before.
  void fail_all(const Status& status);
  /// Forgets the sessions. All operations have ended.
  void withdraw();
  bool idle() const { return !running_ && waiting_.empty(); }
  /// What the peer may still have to keep for operations of this rank.
  const EarlyCost& early_at(int peer) const { return lane(peer).early(); }

  // Called for frames of peers. A null sink means that the world has failed.
  PayloadSink* on_call(int peer, const FrameHeader& header);
  PayloadSink* on_data(int peer, const FrameHeader& header);
  /// The peer has left the group or the world. Ends the world if the running operation still needs it.
  void on_peer_left(int peer);
  /// Called by lanes when bytes have come or left. Computes what can be computed now, and wakes the lanes that can send.
  void advance();

  /// The running operation, if one runs; the caller sets its group.
  std::optional<Pending> pending() const;
  /// Whether the running operation's deadline has passed.
  bool overdue(Instant now) const { return running_ && now >= deadline_; }
  /// The `timed_out` status of the running operation. `late` is the rank that holds it up, which may be another one than this rank waits
  /// for, or -1 where it is not known; `what_it_does` describes that rank.
  Status timeout(int late, const std::string& what_it_does) const;
  /// How many operations this rank has called, and how many of them have ended.
  ///@{
  std::uint64_t called() const { return sequence_ + (running_ ? 1 : 0) + waiting_.size(); }
  std::uint64_t ended() const { return sequence_; }
  ///@}
  /// The state of the operation that the stream is in, for RankState messages. There has to be one.
  wire::OperationState state(Instant now) const;
  void add_to(wire::RankState& rank, Instant now) const;

 private:
  class CallSink;

  void start_next();
  void start_lanes();
  /// Visits the peers of the running plan, those after this rank first: where all ranks send to all, they begin with different ones, so
  /// that no port gets everything at once.
  template <class Visit>
  void each_from_next_rank(Visit visit);
  void take_early();
  void take_early_frames(int peer);
  void on_early_frame_ended(int peer, std::uint64_t sequence);
  void on_call_decoded(int peer, std::uint64_t sequence, const Call& call);
  void compare(int peer, std::uint64_t sequence, const Call& theirs, const Call& ours);
  bool sends_have_left() const;
  void finish();
  void record_ended(bool failed);

  Lane& lane(int peer) { return lanes_[static_cast<std::size_t>(peer)]; }
  const Lane& lane(int peer) const { return lanes_[static_cast<std::size_t>(peer)]; }
  /// Null where the running operation has no steps with that peer.
  Lane* find_lane(int peer);
  const Call& past_call(std::uint64_t sequence) const { return history_[sequence % history_.size()]; }

  /// One of the ranks that the running operation waits for: preferably one that has not called it, then one whose bytes are missing. -1
  /// where it waits for none.
  int awaited() const;
  /// Describes what the running operation waits for: "waiting for rank 2 (has not called it), rank 3 (sent 40 of 100 bytes)".
  std::string waiting_text() const;
  void add_progress_to(wire::OperationState& state) const;

  const std::uint16_t id_;
  GroupContext& group_;
  RunningPlan plan_;
  std::vector<std::byte> records_;  // the encoded call, once for all peers or once for each
  // By rank. Lanes never move, because a session may still have one in its queue when the next operation begins.
  std::deque<Lane> lanes_;
  std::deque<CollectiveTask> waiting_;
  CollectiveTask current_{};
  bool running_ = false;
  bool start_deferred_ = false;
  std::uint64_t sequence_ = 0;  // of the running operation, or of the next one
  Instant deadline_{};
  std::optional<std::uint32_t> track_;  // if there is a trace, of the operations that have ended
  Instant began_{};
  Instant ended_at_{};         // when the last finished operation ended
  std::vector<Call> history_;  // the last finished calls, by sequence modulo size; peers are no further behind than that
  EarlyArrivals early_;
  std::vector<std::unique_ptr<CallSink>> call_sinks_;
  AliveGuard guard_;
};

}  // namespace ringlet
