#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/engine/group_engine.hpp"

namespace ringlet {

/// The groups of a world that this rank is in, by its own numbers for them. Every rank numbers its groups itself and tells the others when
/// a group is formed, so that splits of several groups need no common counter. Belongs to the loop's thread.
class GroupTable {
 public:
  /// At most `limit` groups at a time, the world's among them.
  GroupTable(GroupHost& host, std::size_t limit);

  /// A number for a group that is being formed; nothing where all are in use. Until create() no frame may come for it.
  std::optional<std::uint32_t> reserve();
  /// Gives a reserved number back.
  void release(std::uint32_t id);
  /// The group of a reserved number.
  GroupEngine& create(std::uint32_t id, Membership members, int rank);
  /// Takes leave of the members and destroys the group, in which no operation may be pending. What members still send is read and dropped;
  /// the number is free again when all of them have left, too.
  void leave(GroupEngine& group);
  /// Destroys a group that was created but never used.
  void discard(GroupEngine& group);

  // From peers; ranks are the world's.
  /// The group of that number, where the peer is in it and has not left.
  GroupEngine* find(int peer, std::uint32_t id) const;
  /// A frame that find() has no group for. Dropped if it was under way when this rank left the group; otherwise the world ends.
  void on_late_frame(int peer, const FrameHeader& header);
  void on_left_world(int peer);

  /// What this rank does and has done in all groups, and how far it has come in the stream that a member asks about: in a group that it has
  /// left it has called nothing.
  wire::RankState state(int peer, const wire::StateQuestion& question) const;
  /// As GroupEngine's, of all groups.
  void find_pending(Instant since, std::vector<Pending>& found) const;

  bool idle() const;
  /// `timed_out` where a message's deadline has passed.
  Status check_messages(Instant now) const;
  /// A running operation whose deadline has passed.
  std::optional<Pending> overdue(Instant now) const;
  void fail_all(const Status& status);

 private:
  /// A number is free, reserved, a group's, or, while `awaited` is not empty, one that is not yet free again.
  struct Slot {
    std::unique_ptr<GroupEngine> group;
    std::vector<int> awaited;  // of a group that was left: members whose leave has not come, in numbers of the world
  };

  void forget_member(std::uint32_t id, int peer);
  void drop(std::uint32_t id);
  /// What was done in groups that are gone.
  wire::RankState past(Instant now) const;

  GroupHost& host_;
  const std::size_t limit_;
  std::vector<Slot> slots_;          // by number
  std::vector<std::uint32_t> free_;  // numbers below slots_.size()
  wire::RankState past_;             // as it was at that time
  Instant past_at_{};
};

}  // namespace ringlet
