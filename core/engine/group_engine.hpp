#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/engine/mailbox.hpp"
#include "core/engine/stream_engine.hpp"

namespace ringlet {

/// One group, seen from one of its ranks: its streams and mailboxes. The operations' ranks are the group's; a status names the world's.
/// Belongs to the loop's thread; its table owns it (group_table.hpp).
class GroupEngine {
 public:
  static constexpr std::uint16_t kMaxStreams = 1024;

  /// `rank` is this rank's in the group.
  GroupEngine(GroupHost& host, Membership members, int rank);
  ~GroupEngine();

  const Membership& members() const { return context_.members(); }
  /// The world's, with rank, size and guests of this group. Does not change once there are operations: then any thread may read it.
  const WorldOptions& options() const { return context_.options(); }
  /// What the ranks have agreed on while they met. Before the first operation.
  void set_placement(const Placement& placement, const AlgorithmLimits& limits) { context_.set_placement(placement, limits); }
  /// This rank's number of the group; 0 is the world.
  std::uint32_t id() const { return members().group_id(options().rank); }

  /// Starts an operation whose arguments have been checked (requests.hpp). Completes exactly once, from the loop.
  void start(std::uint16_t stream, CollectiveTask task);
  void send(std::uint16_t stream, MessageTask task);
  void receive(std::uint16_t stream, MessageTask task);
  /// What carries the bytes to the other members: "tcp", "memory", "mixed", or "none" where there is nobody.
  std::string_view links();
  /// No operation is pending.
  bool idle() const;

  // From the world; these two ranks are the world's, of a member that has not left.
  /// A frame of an operation, or the member's leave, which ends the world if it is still needed here. A null sink: nothing of the frame is
  /// wanted, or the world has failed.
  PayloadSink* on_frame(int world_rank, const FrameHeader& header);
  /// The member has left the world; its session's sources have been dropped.
  void on_left_world(int world_rank);

  bool has_left(int peer) const { return context_.departure(peer) != GroupContext::Departure::none; }
  /// `timed_out` where a message's deadline has passed.
  Status check_messages(Instant now) const;
  /// A running operation whose deadline has passed.
  std::optional<Pending> overdue(Instant now);
  /// Adds what has been under way since then or longer, of each stream and mailbox the oldest.
  void find_pending(Instant since, std::vector<Pending>& found);
  /// Whether it is still under way and, of a mailbox, still the oldest.
  bool is_pending(const Pending& pending) const;
  /// For RankState messages, of what is under way.
  wire::OperationState state(const Pending& pending, Instant now) const;
  /// Adds what this rank does and has done in this group. An operation that `stream` is in comes first.
  void add_to(wire::RankState& state, Instant now, std::uint32_t stream = 0) const;
  /// The same, and how many operations of `stream` this rank has called and ended.
  void answer(std::uint32_t stream, wire::RankState& state, Instant now) const;
  /// `timed_out` of a stream's running operation. `late`: the rank that holds it up, and what that one does; -1: as seen from here.
  Status timeout(std::uint16_t stream, int late = -1, const std::string& what_it_does = {}) const {
    return streams_[stream]->timeout(late, what_it_does);
  }
  std::string operation_name(std::uint16_t stream, std::uint64_t sequence) const { return context_.operation_name(stream, sequence); }
  void fail_all(const Status& status);

 private:
  StreamEngine& stream(std::uint16_t id);
  Mailbox& mailbox(std::uint16_t id);
  void tell_departure(int peer);
  void complete_alone(CollectiveTask task);

  GroupContext context_;
  std::vector<std::unique_ptr<StreamEngine>> streams_;  // by id; null where unused
  std::map<std::uint16_t, std::unique_ptr<Mailbox>> mailboxes_;
};

}  // namespace ringlet
