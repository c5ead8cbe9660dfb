#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/engine/group_table.hpp"

namespace ringlet {

/// The arguments of the creation of a group by its members.
struct CreateTask {
  std::vector<int> ranks;  // of the parent, by rank in the new group; this rank is one of them
  int tag = 0;             // creations under way with different tags do not meet each other
  Duration timeout;
  /// Runs once, from the loop. The group is null where the status is not ok.
  std::function<void(const Status&, GroupEngine*)> completion;
};

/// Checks what a caller gave: the ranks exist, none is there twice, this one is there, and so is the tag.
Status check_creation(const std::vector<int>& ranks, int tag, const WorldOptions& parent);

/// Forms a group of these ranks of `parent`, which alone call this, with the same ranks and tag; the others take no part. The members send
/// each other their numbers of the group, then a word that they have it, so that no frame comes for a group that does not exist yet. Where
/// the members disagree, or one is in as many groups as it may be, no group is formed, and the members that this concerns get an error.
/// The arguments have been checked.
void create_group(GroupTable& table, GroupHost& host, GroupEngine& parent, CreateTask task);

}  // namespace ringlet
