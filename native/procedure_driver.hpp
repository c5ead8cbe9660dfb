#pragma once

#include <deque>
#include <ringlet/group.hpp>
#include <vector>

#include "core/engine/procedure.hpp"

namespace ringlet::native {

/// Drives the core's procedures on the calling thread, which packs, unpacks and waits. For one thread at a time.
class ProcedureDriver {
 public:
  /// `groups` are the groups that the procedures refer to by index. All collectives run on `stream`.
  ProcedureDriver(std::vector<Group> groups, Stream stream);

  /// Runs until the procedure has done all work that it was given. Throws its failure, once nothing is under way any more. After success,
  /// collectives may still be under way; their buffers have to stay valid until the driver is destroyed, which waits for them.
  void drive(Procedure& procedure);

 private:
  void give_up(Procedure& procedure);

  const std::vector<Group> groups_;
  const CallOptions call_;
  std::deque<Work> under_way_;  // the oldest first
};

}  // namespace ringlet::native
