#pragma once

#include <signal.h>

#include <array>
#include <cstddef>

#include "transport/uv/uv_loop.hpp"

namespace ringlet::command {

/// Catches SIGINT, SIGTERM and SIGHUP, remembers that one came, and wakes the loop. A second signal ends the program. SIGHUP
/// stays ignored where it is, as nohup has it. Only one object may exist at a time. Belongs to the main thread.
class StopSignals {
 public:
  /// For who asks came().
  StopSignals() : StopSignals(nullptr) {}
  /// `loop` must outlive this object.
  explicit StopSignals(UvLoop& loop) : StopSignals(&loop) {}
  /// Gives the signals the meaning that they had before.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  bool came() const noexcept;
  /// Returns 128 + the signal's number once one came.
  int exit_code() const noexcept;

 private:
  explicit StopSignals(UvLoop* loop);

  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace ringlet::command
