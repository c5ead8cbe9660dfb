#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/engine/group_engine.hpp"

namespace ringlet {

/// The groups of a world that this rank is in, under this rank's own numbers. Every rank numbers its groups itself and tells the others
/// when a group is formed, so that splits of several groups need no common counter. Belongs to the loop's thread.
class GroupTable {
 public:
  /// Holds at most `limit` groups at a time, including the group of all ranks.
  GroupTable(GroupHost& host, std::size_t limit);

  /// Reserves a number for a group that is being formed, or returns nothing where all are in use. Until create() no frame may come for it.
  std::optional<std::uint32_t> reserve();
  /// Membership::Member::serial for this rank, of a reserved number.
  std::uint32_t serial(std::uint32_t id) const { return slots_[id].serial; }
  /// Gives a reserved number back.
  void release(std::uint32_t id);
  /// Creates the group of a reserved number.
  GroupEngine& create(std::uint32_t id, Membership members, int rank);
  /// Tells the members that this rank leaves, and destroys the group, in which no operation may be pending. Frames that members still send
  /// are read and dropped; the number is free again when all of them have left as well.
  void leave(GroupEngine& group);
  /// Destroys a group that was created but never used.
  void discard(GroupEngine& group);

  // The following handle messages of peers. Ranks are the world's numbers.
  /// The group of that number, or null where the peer is not in it or has left it.
  GroupEngine* find(int peer, std::uint32_t id) const;
  /// Handles a frame for which find() has no group. It is dropped if it was under way when this rank left the group; otherwise the world
  /// ends.
  void on_late_frame(int peer, const FrameHeader& header);
  void on_left_world(int peer);

  /// This rank's running and finished operations in all groups, and its progress in the stream that `question` is about. Where this rank
  /// has left that group, it counts as having called nothing.
  wire::RankState state(int peer, const wire::StateQuestion& question) const;
  /// Like GroupEngine::find_pending(), for all groups.
  void find_pending(Instant since, std::vector<Pending>& found) const;

  /// What this rank has not started in groups whose parts may change (parts_switch.hpp). So long as other members use a group, a rank that
  /// has left it tells of it, too: it may have ended an operation that they have yet to start.
  std::vector<wire::GroupNumbers> unstarted() const;

  /// Calls `visit` for each group that this rank is in.
  template <class Visit>
  void for_each_group(Visit visit) const {
    for (const Slot& slot : slots_)
      if (slot.group) visit(*slot.group);
  }
  bool idle() const;
  bool empty() const;
  /// Forgets the sessions, which are about to be handed on. All operations have ended.
  void withdraw();
  /// Returns `timed_out` where a message's deadline has passed.
  Status check_messages(Instant now) const;
  /// A running operation whose deadline has passed.
  std::optional<Pending> overdue(Instant now) const;
  void fail_all(const Status& status);

 private:
  /// A member, by rank in the world, whose `leave` frame has not come, and what it may still have to keep until it has read this rank's.
  struct Awaited {
    int peer;
    EarlyCost early;
  };
  /// The state of one number. It is free, reserved or used by `group`; while `awaited` is not empty, it may not be used again yet.
  struct Slot {
    std::unique_ptr<GroupEngine> group;
    std::vector<Awaited> awaited;  // after leave()
    wire::GroupNumbers left_at{};  // the same: what unstarted() has of the group
    std::uint32_t serial = 0;      // of the group for which it was reserved last
  };

  void forget_member(std::uint32_t id, int peer);
  void drop(std::uint32_t id);
  /// The finished operations of groups that have been destroyed.
  wire::RankState past(Instant now) const;

  GroupHost& host_;
  const std::size_t limit_;
  std::vector<Slot> slots_;          // by number
  std::vector<std::uint32_t> free_;  // numbers below slots_.size()
  std::uint32_t reserved_ = 0;       // how often a number was
  wire::RankState past_;             // as it was at past_at_
  Instant past_at_{};
};

}  // namespace ringlet
