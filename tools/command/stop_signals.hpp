#pragma once

#include "transport/uv/uv_loop.hpp"

namespace ringlet::command {

/// Catches SIGINT, SIGTERM and SIGHUP, wakes the loop, and remembers; a second one ends the program. One at a time; belongs to the main
/// thread.
class StopSignals {
 public:
  /// `loop` outlives it.
  explicit StopSignals(UvLoop& loop);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  bool came() const noexcept;
};

}  // namespace ringlet::command
