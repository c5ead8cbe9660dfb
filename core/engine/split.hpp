#pragma once

#include <cstdint>
#include <functional>

#include "core/engine/group_table.hpp"

namespace ringlet {

/// A split as its caller gave it.
struct SplitTask {
  int color = 0;  // negative: in no group
  int key = -1;   // negative: the rank in the parent
  Duration timeout;
  /// Runs once, from the loop. Null where the colour is negative or the status is not ok.
  std::function<void(const Status&, GroupEngine*)> completion;
};

/// Forms groups out of `parent`, one for each colour that is not negative, its ranks ordered by key, then by their rank in the parent.
/// Every rank of the parent calls it. Two collectives on `stream`: all learn colours, keys and each other's numbers of the new groups;
/// and none goes on before all have their group, so that no frame comes for a group that is not there yet.
/// `invalid_argument` on all ranks, and no group, where one of them is in as many groups as it may be.
void split_group(GroupTable& table, GroupHost& host, GroupEngine& parent, std::uint16_t stream, SplitTask task);

}  // namespace ringlet
