#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/engine/mailbox.hpp"
#include "core/engine/stream_engine.hpp"

namespace ringlet {

/// One group on one of its ranks, with its streams and mailboxes. Ranks in operations are the group's numbers, the rank of a status is the
/// world's. Belongs to the loop's thread. Owned by the world's GroupTable.
class GroupEngine {
 public:
  static constexpr std::uint16_t kMaxStreams = 1024;
  static constexpr std::uint16_t kOwnStream = kMaxStreams;  // Ringlet's own
  /// The messages by which members form groups have a stream for each tag.
  static constexpr std::uint16_t kFirstCreationStream = kOwnStream + 1;
  static constexpr std::uint16_t kCreationTags = 1024;

  /// `rank` is this rank's number in the group.
  GroupEngine(GroupHost& host, Membership members, int rank);
  ~GroupEngine();

  const Membership& members() const { return context_.members(); }
  /// The world's options, with rank, size and guests of this group. They do not change once there are operations; any thread may read them
  /// then.
  const WorldOptions& options() const { return context_.options(); }
  /// Sets what the ranks have agreed on while they met. To be called before the first operation.
  void set_placement(const AgreedPlacement& agreed) { context_.set_placement(agreed); }
  /// For a change of speeds while the group is used (parts_switch.hpp); see GroupContext.
  ///@{
  /// By stream, the first operation that has not started here; of streams behind the end it is the first of all.
  std::vector<std::uint64_t> unstarted() const;
  bool change_speeds(const wire::PartsChange& change) { return context_.change_speeds(change, unstarted()); }
  bool has_use_of_speeds() const { return context_.has_use_of_speeds(); }
  /// Lets operations that were held back start at the loop's next turn.
  void go_on();
  ///@}
  std::size_t kept_changes() const { return context_.kept_changes(); }
  /// The topology since the last change of speeds.
  const Topology& topology_of_last_change() const { return context_.topology_of_last_change(); }
  /// The number by which this rank knows the group; 0 is the world.
  std::uint32_t id() const { return members().group_id(options().rank); }

  /// Starts an operation whose arguments have been checked (requests.hpp). Completes exactly once, from the loop.
  void start(std::uint16_t stream, CollectiveTask task);
  void send(std::uint16_t stream, MessageTask task);
  void receive(std::uint16_t stream, MessageTask task);
  /// The medium that carries the bytes to the other members: "tcp", "memory", "mixed", or "none" where there are no others.
  std::string_view links();
  /// Whether no operation is pending.
  bool idle() const;
  /// What a member may still have to keep for operations of this rank that have ended here. No operation may be pending.
  EarlyCost early_at(int peer) const;

  // The world calls the next two. Their rank is the world's number of a member that has not left.
  /// Takes a frame of an operation, or the member's `leave` frame, which ends the world if the member is still needed here. Returns null
  /// where the payload is not wanted or the world has failed.
  PayloadSink* on_frame(int world_rank, const FrameHeader& header);
  /// The member has left the world; its session's sources have been dropped.
  void on_left_world(int world_rank);

  bool has_left(int peer) const { return context_.departure(peer) != GroupContext::Departure::none; }
  /// Returns `timed_out` where a message's deadline has passed.
  Status check_messages(Instant now) const;
  /// A running operation whose deadline has passed.
  std::optional<Pending> overdue(Instant now);
  /// Adds the operations and messages that have been under way since `since` or longer: the oldest one of each stream and mailbox.
  void find_pending(Instant since, std::vector<Pending>& found);
  /// Whether the operation or message is still under way; a message also has to be the oldest one of its mailbox.
  bool is_pending(const Pending& pending) const;
  /// The state of `pending`, which is under way, for RankState messages.
  wire::OperationState state(const Pending& pending, Instant now) const;
  /// Adds this rank's running and finished operations in this group to `state`. The one that `stream` is in comes first.
  void add_to(wire::RankState& state, Instant now, std::uint32_t stream = 0) const;
  /// Like add_to(), and sets how many operations of `stream` this rank has called and ended.
  void answer(std::uint32_t stream, wire::RankState& state, Instant now) const;
  /// The `timed_out` status of a stream's running operation. `late` is the rank that holds it up, which `what_it_does` describes; with -1
  /// the status says only what this rank sees itself.
  Status timeout(std::uint16_t stream, int late = -1, const std::string& what_it_does = {}) const {
    return streams_[stream]->timeout(late, what_it_does);
  }
  std::string operation_name(std::uint16_t stream, std::uint64_t sequence) const { return context_.operation_name(stream, sequence); }
  void fail_all(const Status& status);
  /// Forgets the sessions. All operations have ended.
  void withdraw();

 private:
  StreamEngine& stream(std::uint16_t id);
  Mailbox& mailbox(std::uint16_t id);
  void tell_departure(int peer);
  void complete_alone(CollectiveTask task);

  GroupContext context_;
  std::vector<std::unique_ptr<StreamEngine>> streams_;  // by id; null where unused
  std::map<std::uint16_t, std::unique_ptr<Mailbox>> mailboxes_;
  AliveGuard guard_;
};

}  // namespace ringlet
