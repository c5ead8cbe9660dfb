#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/engine/collective.hpp"
#include "core/engine/pending.hpp"

namespace ringlet {

/// The operations of one stream: started one after the other, in the order of the calls, numbered from 0. Keeps what peers that are ahead
/// send.
class StreamQueue {
 public:
  StreamQueue(std::uint16_t id, GroupContext& group);
  ~StreamQueue();

  void add(CollectiveTask task);

  // From peers. A null sink: the world has failed.
  PayloadSink* on_call(int peer, const FrameHeader& header);
  PayloadSink* on_data(int peer, const FrameHeader& header);
  void on_peer_left(int peer);
  /// The running operation's deadline has passed.
  bool overdue(Instant now) const { return running_ && now >= deadline_; }
  /// The running operation, if one runs; the caller fills the group in.
  std::optional<Pending> pending() const;
  /// How many operations this rank has called, and how many of them have ended.
  ///@{
  std::uint64_t called() const { return sequence_ + (running_ ? 1 : 0) + waiting_.size(); }
  std::uint64_t ended() const { return sequence_; }
  ///@}
  /// For RankState messages, of the operation that the stream is in; there is one.
  wire::OperationState state(Instant now) const;
  void add_to(wire::RankState& state, Instant now) const;
  /// `timed_out` of the running operation. `late`: the rank that holds it up, if another than it waits for itself, and what that one does.
  Status timeout(int late, const std::string& what_it_does) const;
  /// "operation 41 of stream 0", and of which group where that is not the world.
  std::string operation_name(std::uint64_t sequence) const;
  /// Ends every operation with `status`. Sessions must have dropped their sources before.
  void fail_all(const Status& status);
  bool idle() const { return !running_ && waiting_.empty(); }

 private:
  class CallSink;
  struct EarlyFrame;
  /// What has come of an operation that has not started here.
  struct Early {
    std::optional<Call> call;
    std::deque<std::unique_ptr<EarlyFrame>> frames;
  };
  using EarlyKey = std::pair<std::uint64_t, int>;  // sequence, peer

  void start_next();
  void on_finished();
  void take_early();
  void on_call_decoded(int peer, std::uint64_t sequence, const Call& call);
  void compare(int peer, std::uint64_t sequence, const Call& theirs, const Call& ours);
  void early_frame_ended(int peer, EarlyFrame& frame);
  wire::OperationState last_ended(Instant now) const;

  static constexpr std::size_t kMaxEarlyBytes = 64 << 20;
  static constexpr std::size_t kEarlyFrameBytes = 128;  // what each early frame costs beyond its payload
  static constexpr std::uint64_t kMaxEarlyOperations = 65'536;

  const std::uint16_t id_;
  GroupContext& group_;
  Collective collective_;
  std::deque<CollectiveTask> waiting_;
  CollectiveTask current_{};
  bool running_ = false;
  bool start_deferred_ = false;
  std::uint64_t sequence_ = 0;  // of the running operation, or of the next one
  Instant deadline_{};
  Instant ended_at_{};         // of the last operation that has
  std::vector<Call> history_;  // the last finished calls, each at its sequence modulo the size: as many as the window lets a rank be ahead
  std::map<EarlyKey, Early> early_;
  std::size_t early_bytes_ = 0;
  std::vector<std::unique_ptr<CallSink>> call_sinks_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ringlet
