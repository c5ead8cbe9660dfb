#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/engine/group_context.hpp"
#include "core/engine/incoming_message.hpp"
#include "core/engine/outgoing_message.hpp"
#include "core/engine/pending.hpp"

namespace ringlet {

/// The messages between this rank and one peer on one stream, in both directions. Sends and receives are matched in the order of the calls.
/// A send first offers dtype and shape, and the bytes follow at once if they are few; the receiver accepts or refuses once its receive is
/// posted. A refused message ends as `mismatch` on both sides, and the group goes on.
class PeerMessages {
 public:
  /// `on_offered` is called when a message has come that no receive waits for.
  PeerMessages(GroupContext& group, std::uint16_t stream, int peer, std::function<void()> on_offered);
  ~PeerMessages();
  PeerMessages(const PeerMessages&) = delete;
  PeerMessages& operator=(const PeerMessages&) = delete;

  void send(MessageTask task);
  void receive(MessageTask task);
  /// Whether the message that the next receive would take has come.
  bool offers_next() const { return early_.count(next_in_) != 0; }

  // Called for frames of the peer. A null sink means that the world has failed.
  PayloadSink* on_frame(const FrameHeader& header);
  void on_peer_left();
  Status check_deadlines(Instant now) const;
  /// The message that has been under way for the longest time; the caller sets its group.
  std::optional<Pending> pending() const;
  /// The state of `message`, which is under way, for RankState messages.
  wire::OperationState state(const Pending& message, Instant now) const;
  void add_ended_to(wire::RankState& state, Instant now) const;
  /// Ends every message with `status`. Sessions must have dropped their sources before.
  void fail_all(const Status& status);
  bool idle() const { return outgoing_.empty() && incoming_.empty(); }

  // Called by the messages that this object owns.
  GroupContext& group() { return group_; }
  Session& session() { return group_.session(peer_); }
  FrameHeader header(FrameKind kind, std::uint64_t sequence) const;
  /// Returns whether the bytes of a new message may be sent before it is accepted. If so, they are counted until it is answered.
  bool take_eager(std::size_t bytes);
  /// A frame of a message that was offered early has come; its receive may have been posted meanwhile.
  void on_early_bytes(std::uint64_t sequence);
  void drop_early(std::uint64_t sequence) { early_.erase(sequence); }
  /// Removes the message and completes it.
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
  const std::function<void()> on_offered_;
  std::uint64_t next_out_ = 0, next_in_ = 0;
  std::map<std::uint64_t, std::unique_ptr<OutgoingMessage>> outgoing_;
  std::map<std::uint64_t, std::unique_ptr<IncomingMessage>> incoming_;  // posted, not done
  std::map<std::uint64_t, std::unique_ptr<EarlyMessage>> early_;        // offered but not posted, or refused while bytes are still coming
  std::unique_ptr<RecordSink> record_;
  std::uint64_t ended_ = 0;
  Ended last_;
};

}  // namespace ringlet
