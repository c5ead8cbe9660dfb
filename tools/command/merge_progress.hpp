#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "tools/command/progress_line.hpp"
#include "tools/command/stop_signals.hpp"
#include "tools/trace/merge.hpp"

namespace ringlet::command {

/// Watches the merging of a trace: shows how far it is, and ends it by a signal (StopSignals). Belongs to the main thread.
class MergeProgress {
 public:
  /// `subcommand` stands before the line.
  explicit MergeProgress(std::string subcommand) : line_(std::move(subcommand)) {}

  /// The function refers to this object.
  trace::MergeWatch watch();
  /// Takes the line away.
  void end() { line_.end(); }
  /// Once the watch has ended the merging: 128 + the signal's number.
  int signal_code() const { return signals_.exit_code(); }

 private:
  bool go_on(std::uint64_t read_bytes, std::uint64_t all_bytes);

  ProgressLine line_;
  const StopSignals signals_;
};

}  // namespace ringlet::command
