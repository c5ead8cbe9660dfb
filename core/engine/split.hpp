#pragma once

#include <cstdint>
#include <functional>

#include "core/engine/group_table.hpp"

namespace ringlet {

/// The arguments of a split.
struct SplitTask {
  int color = 0;  // negative: in no group
  int key = -1;   // negative: the rank in the parent
  Duration timeout;
  /// Runs once, from the loop. The group is null where the colour is negative or the status is not ok.
  std::function<void(const Status&, GroupEngine*)> completion;
};

/// Forms groups out of `parent`, one for each colour that is not negative. The ranks of a group are ordered by key, then by their rank in
/// the parent. Every rank of the parent has to call this. It runs two collectives on `stream`: an all-gather of the colours, the keys and
/// the ranks' numbers of the new groups, then a barrier, so that no frame comes for a group that does not exist yet. Where a rank is in as
/// many groups as it may be, no group is formed and all ranks get `invalid_argument`.
void split_group(GroupTable& table, GroupHost& host, GroupEngine& parent, std::uint16_t stream, SplitTask task);

}  // namespace ringlet
