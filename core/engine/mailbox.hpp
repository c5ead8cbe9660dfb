#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "core/engine/peer_messages.hpp"

namespace ringlet {

/// Point-to-point messages of one stream with all peers. A receive from any rank takes a message that has been offered and that no receive
/// from its sender waits for; where there are several such senders, they take turns.
class Mailbox {
 public:
  Mailbox(std::uint16_t stream, GroupContext& group);

  void send(MessageTask task);
  void receive(MessageTask task);

  // Called for frames of peers. A null sink means that the world has failed.
  PayloadSink* on_frame(int peer, const FrameHeader& header) { return with(peer).on_frame(header); }
  void on_peer_left(int peer);
  Status check_deadlines(Instant now) const;
  /// The message that has been under way for the longest time; the caller sets its group.
  std::optional<Pending> pending() const;
  /// The state of `message`, which is under way, for RankState messages.
  wire::OperationState state(const Pending& message, Instant now) const;
  /// Adds this rank's messages to `state`. Of those under way only the oldest is added.
  void add_to(wire::RankState& state, Instant now) const;
  /// Ends every message with `status`. Sessions must have dropped their sources before.
  void fail_all(const Status& status);
  bool idle() const;

 private:
  /// A receive that no message has been found for.
  struct AnyReceive {
    std::uint64_t sequence;
    Instant started;
    MessageTask task;

    Instant deadline() const { return started + task.timeout; }
  };

  PeerMessages& with(int peer) { return peers_[static_cast<std::size_t>(peer)]; }
  const PeerMessages& with(int peer) const { return peers_[static_cast<std::size_t>(peer)]; }
  int size() const { return static_cast<int>(peers_.size()); }
  void note_start(MessageTask& task) const;
  void match_any();
  bool can_still_come() const;
  std::optional<int> next_offering() const;
  wire::OperationState state_of_any(Duration time) const;

  GroupContext& group_;
  const std::uint16_t stream_;
  std::deque<PeerMessages> peers_;  // by rank
  std::deque<AnyReceive> any_;      // the oldest first
  std::uint64_t next_any_ = 0;
  int last_source_ = 0;
};

}  // namespace ringlet
