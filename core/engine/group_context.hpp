#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <ringlet/status.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/membership.hpp"
#include "core/engine/options.hpp"
#include "core/engine/session.hpp"
#include "core/engine/tasks.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// The part of a world that its groups use. Ranks are the world's numbers.
class GroupHost {
 public:
  virtual Session& session_with(int world_rank) = 0;
  virtual EventLoop& loop() = 0;
  virtual const WorldOptions& options() const = 0;
  /// Ends the world with all its groups.
  virtual void fail(const Status& status) = 0;
  /// The rank has broken the protocol. Ends the world with a `protocol_error` that blames the rank, and gives it up: no later epoch of an
  /// elastic world has it.
  virtual void on_violation(int world_rank, const std::string& text) = 0;
  virtual const Status& failure() const = 0;
  virtual bool has_left_world(int world_rank) const = 0;
  virtual void send_control(int world_rank, const wire::ControlMessage& message) = 0;
  /// Whether no operation may start now, since the ranks agree on a change of speeds (parts_switch.hpp).
  virtual bool is_held_back() const = 0;
  /// The last change of speeds in this world; null where there was none.
  virtual const wire::PartsChange* last_change() const = 0;
  /// The rank's name for people; empty where none is known.
  virtual const std::string& rank_name(int world_rank) const = 0;

 protected:
  ~GroupHost() = default;
};

/// The members and options of one group and its access to the world, which its streams and mailboxes share. Peers are ranks in the group;
/// the rank of a status is the world's number.
class GroupContext {
 public:
  /// What a member has left. Where it is only the group, the link to the member stays in use.
  enum class Departure : std::uint8_t { none, from_group, from_world };

  /// `rank` is this rank's number in the group.
  GroupContext(GroupHost& host, Membership members, int rank);
  GroupContext(const GroupContext&) = delete;
  GroupContext& operator=(const GroupContext&) = delete;

  const Membership& members() const { return members_; }
  /// The world's options, with rank, size and guests of this group.
  const WorldOptions& options() const { return options_; }
  void set_placement(const AgreedPlacement& agreed) { options_.set_placement(agreed); }

  // Other threads may read options() at any time, so speeds that change while the group is used stand beside them.
  /// The topology for one operation: that of options(), unless the group's speeds have changed before it.
  const Topology& topology_of(std::uint16_t stream, std::uint64_t sequence) const;
  /// Sets the members' speeds as a change of the world says, from the operation of each stream on that it names for this group; where it
  /// names none, from the first one on. `unstarted` says, by stream, which operations have not started here. Returns false where one that
  /// has would change.
  bool change_speeds(const wire::PartsChange& change, std::span<const std::uint64_t> unstarted);
  const Topology& topology_of_last_change() const { return changes_.empty() ? options_.topology : changes_.back().topology; }
  /// How many changes are kept for operations that have not started.
  std::size_t kept_changes() const { return changes_.size(); }
  /// Parts of two ranks are equal whatever their speeds.
  bool has_use_of_speeds() const { return options_.size > 2; }
  bool is_held_back() const { return host_.is_held_back(); }

  Session& session(int peer) { return host_.session_with(members_.world_rank(peer)); }
  EventLoop& loop() const { return host_.loop(); }
  const Status& failure() const { return host_.failure(); }
  /// Ends the world.
  void fail(const Status& status) { host_.fail(status); }
  /// GroupHost::on_violation() of this member: "rank 3 sent " and `text`.
  void fail_for(int peer, const std::string& text);
  void complete(Completion completion, const Status& status) const;
  /// Records a message that has ended, where there is a trace and MessageTask::since is set.
  void record_message(std::uint16_t stream, std::uint64_t sequence, bool outgoing, const MessageTask& task, bool failed);

  /// A name for texts: "operation 41 of stream 0", with the group where that is not the world.
  std::string operation_name(std::uint16_t stream, std::uint64_t sequence) const;
  std::string stream_name(std::uint16_t stream) const;

  Departure departure(int peer) const;
  /// The member has left this group, but possibly not the world.
  void set_left(int peer) { left_[static_cast<std::size_t>(peer)] = true; }

 private:
  GroupHost& host_;
  const Membership members_;
  WorldOptions options_;
  std::vector<bool> left_;  // by rank
  struct SpeedsFrom {
    std::vector<std::uint64_t> first;
    Topology topology;
  };
  std::deque<SpeedsFrom> changes_;                                          // that operations may still need, in their order
  std::map<std::pair<std::uint16_t, bool>, std::uint32_t> message_tracks_;  // if there is a trace, by stream and whether they are sent
};

}  // namespace ringlet
