#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tools/command/stop_signals.hpp"
#include "tools/trace/merge.hpp"

namespace ringlet::command {

/// Watches the merging of a trace: says on stderr, where that is a terminal, how far it is, and ends it by a signal (StopSignals). Belongs
/// to the main thread.
class MergeProgress {
 public:
  /// `subcommand` stands before the line.
  explicit MergeProgress(std::string subcommand);
  ~MergeProgress() { end(); }
  MergeProgress(const MergeProgress&) = delete;
  MergeProgress& operator=(const MergeProgress&) = delete;

  /// The function refers to this object.
  trace::MergeWatch watch();
  /// Takes the line away.
  void end();
  /// Once the watch has ended the merging: 128 + the signal's number.
  int signal_code() const { return signals_.exit_code(); }

 private:
  bool go_on(std::uint64_t read_bytes, std::uint64_t all_bytes);

  const std::string subcommand_;
  const bool terminal_;
  const StopSignals signals_;
  std::chrono::steady_clock::time_point next_line_;
  bool has_line_ = false;
};

}  // namespace ringlet::command
