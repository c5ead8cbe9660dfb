#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/engine/group_context.hpp"
#include "core/engine/incoming_message.hpp"
#include "core/engine/outgoing_message.hpp"
#include "core/engine/pending.hpp"

namespace ringlet {

/// The messages between this rank and one peer on one stream, in both directions, matched in the order of the calls. A send first offers
/// dtype and shape, with the bytes behind if they are few; the receiver accepts or refuses once it receives. A refused message is
/// `mismatch` on both sides, and the group lives on.
class PeerMessages {
 public:
  PeerMessages(GroupContext& group, std::uint16_t stream, int peer);
  ~PeerMessages();
  PeerMessages(const PeerMessages&) = delete;
  PeerMessages& operator=(const PeerMessages&) = delete;

  void send(MessageTask task);
  void receive(MessageTask task);

  // From the peer. A null sink: the world has failed.
  PayloadSink* on_frame(const FrameHeader& header);
  void on_peer_left();
  Status check_deadlines(Instant now) const;
  /// The message that has been under way for the longest time; the caller fills the group in.
  std::optional<Pending> pending() const;
  /// For RankState messages, of a message that is under way.
  wire::OperationState state(const Pending& message, Instant now) const;
  void add_ended_to(wire::RankState& state, Instant now) const;
  /// Ends every message with `status`. Sessions must have dropped their sources before.
  void fail_all(const Status& status);
  bool idle() const { return outgoing_.empty() && incoming_.empty(); }

  // From its messages.
  GroupContext& group() { return group_; }
  Session& session() { return group_.session(peer_); }
  FrameHeader header(FrameKind kind, std::uint64_t sequence) const;
  /// Whether the bytes of a new message may leave before it is accepted; they count then until it is answered.
  bool take_eager(std::size_t bytes);
  void give_back_eager(std::size_t bytes) { eager_bytes_ -= bytes; }
  /// Room for bytes of a message that no receive waits for yet; false: the peer has sent more than it may.
  bool hold(std::size_t bytes);
  void release(std::size_t bytes) { held_bytes_ -= bytes; }
  /// Bytes of a message have come that may have been posted meanwhile.
  void on_early_bytes(std::uint64_t sequence);
  void drop_early(std::uint64_t sequence) { early_.erase(sequence); }
  /// Takes the message out and completes it.
  void finish_outgoing(std::uint64_t sequence);
  void finish_incoming(std::uint64_t sequence, const Status& status);

 private:
  class RecordSink;
  /// The message that ended last.
  struct Ended {
    std::uint64_t sequence = 0;
    MessageShape shape{};
    bool outgoing = false;
    Instant at{};
  };

  void on_offer(const FrameHeader& header, const MessageShape& shape);
  void on_refuse(std::uint64_t sequence, const MessageShape& theirs);
  void on_accept(std::uint64_t sequence);
  PayloadSink* on_message(const FrameHeader& header);
  void match(std::uint64_t sequence);
  Status mismatch(bool outgoing, std::uint64_t sequence, const MessageShape& sent, const MessageShape& received) const;
  void remember(const MessageTask& task, std::uint64_t sequence, bool outgoing);
  std::string name(bool outgoing, std::uint64_t sequence) const;
  wire::OperationState state(bool outgoing, std::uint64_t sequence, const MessageShape& shape, Duration time) const;

  GroupContext& group_;
  const std::uint16_t stream_;
  const int peer_;
  std::uint64_t next_out_ = 0, next_in_ = 0;
  std::map<std::uint64_t, std::unique_ptr<OutgoingMessage>> outgoing_;
  std::map<std::uint64_t, std::unique_ptr<IncomingMessage>> incoming_;  // posted, not done
  std::map<std::uint64_t, std::unique_ptr<EarlyMessage>> early_;        // offered, not posted or refused, bytes still coming
  std::unique_ptr<RecordSink> record_;
  std::size_t eager_bytes_ = 0;  // sent and not accepted yet
  std::size_t held_bytes_ = 0;   // of messages that are not posted yet
  std::uint64_t ended_ = 0;
  Ended last_;
};

}  // namespace ringlet
