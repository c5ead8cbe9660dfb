#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "core/engine/group_context.hpp"
#include "core/engine/pending.hpp"
#include "core/engine/tasks.hpp"

namespace ringlet {

/// Point-to-point messages of one stream, matched in order per peer. A send first offers dtype and shape, with the bytes behind if they are
/// few; the receiver accepts or refuses once it receives. A refused message is `mismatch` on both sides, and the group lives on.
class Mailbox {
 public:
  Mailbox(std::uint16_t stream, GroupContext& group);
  ~Mailbox();

  void send(MessageTask task);
  void receive(MessageTask task);

  // From peers. A null sink: the world has failed.
  PayloadSink* on_frame(int peer, const FrameHeader& header);
  void on_peer_left(int peer);
  Status check_deadlines(Instant now) const;
  /// The message that has been under way for the longest time; the caller fills the group in.
  std::optional<Pending> pending() const;
  /// For RankState messages, of a message that is under way.
  wire::OperationState state(const Pending& message, Instant now) const;
  /// Of the messages that are under way the oldest stands for all.
  void add_to(wire::RankState& state, Instant now) const;
  /// Ends every message with `status`. Sessions must have dropped their sources before.
  void fail_all(const Status& status);
  bool idle() const;

 private:
  class Outgoing;
  class Incoming;
  class EarlyMessage;
  class RecordSink;
  struct Box {
    std::uint64_t next_out = 0, next_in = 0;
    std::map<std::uint64_t, std::unique_ptr<Outgoing>> outgoing;
    std::map<std::uint64_t, std::unique_ptr<Incoming>> incoming;   // posted, not done
    std::map<std::uint64_t, std::unique_ptr<EarlyMessage>> early;  // offered, not posted or refused, bytes still coming
    std::unique_ptr<RecordSink> record;
    std::size_t eager_outstanding = 0;  // bytes sent and not accepted yet
    std::size_t early_bytes = 0;        // bytes held for messages not posted yet, at most kEagerWindowBytes
  };

  void on_offer(int peer, const FrameHeader& header, const MessageShape& shape);
  void on_refuse(int peer, std::uint64_t sequence, const MessageShape& theirs);
  void on_accept(int peer, std::uint64_t sequence);
  void match(int peer, std::uint64_t sequence);
  PayloadSink* on_message(int peer, const FrameHeader& header);
  /// Takes the message out and completes it.
  template <class Message>
  void finish(std::map<std::uint64_t, std::unique_ptr<Message>>& from, std::uint64_t sequence, const Status& status) {
    auto node = from.extract(sequence);
    remember(node.mapped()->task(), sequence, std::is_same_v<Message, Outgoing>);
    group_.complete(node.mapped()->take_completion(), status);
  }
  /// Of a message that ends.
  void remember(const MessageTask& task, std::uint64_t sequence, bool outgoing);
  wire::OperationState state(int peer, std::uint64_t sequence, const MessageShape& shape, bool outgoing, Duration time) const;
  std::string message_name(int source, int destination, std::uint64_t sequence) const;

  /// What a sender may have sent to one peer without an answer; so what the receiver has to hold.
  static constexpr std::size_t kEagerWindowBytes = 1 << 20;
  static constexpr std::size_t kMaxOffers = 65'536;

  const std::uint16_t stream_;
  GroupContext& group_;
  std::vector<Box> boxes_;  // by peer
  std::uint64_t ended_ = 0;
  /// The message that ended last.
  struct {
    int peer = 0;
    std::uint64_t sequence = 0;
    MessageShape shape{};
    bool outgoing = false;
    Instant at{};
  } last_;
};

}  // namespace ringlet
