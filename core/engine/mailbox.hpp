#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "core/engine/peer_messages.hpp"

namespace ringlet {

/// Point-to-point messages of one stream with all peers.
class Mailbox {
 public:
  Mailbox(std::uint16_t stream, GroupContext& group);

  void send(MessageTask task);
  void receive(MessageTask task);

  // Called for frames of peers. A null sink means that the world has failed.
  PayloadSink* on_frame(int peer, const FrameHeader& header) { return with(peer).on_frame(header); }
  void on_peer_left(int peer) { with(peer).on_peer_left(); }
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
  PeerMessages& with(int peer) { return peers_[static_cast<std::size_t>(peer)]; }

  std::deque<PeerMessages> peers_;  // by rank
};

}  // namespace ringlet
