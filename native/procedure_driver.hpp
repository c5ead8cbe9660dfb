#pragma once

#include <deque>
#include <ringlet/group.hpp>
#include <vector>

#include "core/engine/procedure.hpp"

namespace ringlet::native {

/// Drives the core's procedures on the calling thread, which packs and unpacks and waits. One thread at a time.
class ProcedureDriver {
 public:
  /// `groups`: those that the procedures name by position. All collectives are of `stream`.
  ProcedureDriver(std::vector<Group> groups, Stream stream);

  /// Until the procedure is done with what it was given; throws its failure, once nothing is under way any more. In success collectives
  /// may go on: their buffers must stay until the driver goes, which waits for them.
  void drive(Procedure& procedure);

 private:
  const std::vector<Group> groups_;
  const CallOptions call_;
  std::deque<Work> under_way_;  // the oldest first
};

}  // namespace ringlet::native
