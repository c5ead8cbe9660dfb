#pragma once

#include "transport/uv/uv_loop.hpp"

namespace ringlet::command {

/// Catches SIGINT, SIGTERM and SIGHUP, remembers that one came, and wakes the loop. A second signal ends the program. Only one object may
/// exist at a time. Belongs to the main thread.
class StopSignals {
 public:
  /// `loop` must outlive this object.
  explicit StopSignals(UvLoop& loop);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  bool came() const noexcept;
  /// Returns 128 + the signal's number once one came.
  int exit_code() const noexcept;
};

}  // namespace ringlet::command
