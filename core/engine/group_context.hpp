#pragma once

#include <cstdint>
#include <ringlet/status.hpp>
#include <string>
#include <vector>

#include "core/engine/membership.hpp"
#include "core/engine/options.hpp"
#include "core/engine/session.hpp"
#include "core/engine/tasks.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// What groups need of the world that they are a part of. Ranks are the world's.
class GroupHost {
 public:
  virtual Session& session_with(int world_rank) = 0;
  virtual EventLoop& loop() = 0;
  virtual const WorldOptions& options() const = 0;
  /// Ends the world with all its groups.
  virtual void fail(const Status& status) = 0;
  virtual const Status& failure() const = 0;
  virtual bool has_left_world(int world_rank) const = 0;
  virtual void send_control(int world_rank, const wire::ControlMessage& message) = 0;
  /// What people know the rank by; empty: nothing is known.
  virtual const std::string& rank_name(int world_rank) const = 0;

 protected:
  ~GroupHost() = default;
};

/// What everything in one group shares: the members, the options and the way to the world. Peers are ranks in the group; the rank of a
/// status is the world's.
class GroupContext {
 public:
  /// What a member that takes no part any more has left. Where it is the group alone, the link to it goes on.
  enum class Departure : std::uint8_t { none, from_group, from_world };

  /// `rank` is this rank's in the group.
  GroupContext(GroupHost& host, Membership members, int rank);
  GroupContext(const GroupContext&) = delete;
  GroupContext& operator=(const GroupContext&) = delete;

  const Membership& members() const { return members_; }
  /// The world's, with rank, size and guests of this group.
  const WorldOptions& options() const { return options_; }
  void set_placement(const Placement& placement, const AlgorithmLimits& limits);

  Session& session(int peer) { return host_.session_with(members_.world_rank(peer)); }
  EventLoop& loop() const { return host_.loop(); }
  const Status& failure() const { return host_.failure(); }
  /// Ends the world.
  void fail(const Status& status) { host_.fail(status); }
  /// Ends the world with a `protocol_error` of this member: "rank 3 sent " and `text`.
  void fail_for(int peer, const std::string& text);
  void complete(Completion completion, const Status& status) const;

  /// "operation 41 of stream 0", and of which group where that is not the world.
  std::string operation_name(std::uint16_t stream, std::uint64_t sequence) const;

  Departure departure(int peer) const;
  /// The member has left this group, and maybe not the world.
  void set_left(int peer) { left_[static_cast<std::size_t>(peer)] = true; }

 private:
  GroupHost& host_;
  const Membership members_;
  WorldOptions options_;
  std::vector<bool> left_;  // by rank
};

}  // namespace ringlet
