#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tools/trace/merge.hpp"

namespace ringlet::command {

/// Watches the merging of a trace: says on stderr, where that is a terminal, how far it is, and ends it by SIGINT or SIGTERM. Only one
/// object may exist at a time. Belongs to the main thread.
class MergeProgress {
 public:
  /// `subcommand` stands before the line.
  explicit MergeProgress(std::string subcommand);
  ~MergeProgress();
  MergeProgress(const MergeProgress&) = delete;
  MergeProgress& operator=(const MergeProgress&) = delete;

  /// The function refers to this object.
  trace::MergeWatch watch();
  /// Takes the line away, and gives signals their former meaning.
  void end();
  /// 128 + the number of the signal that came; nothing where none did.
  static std::optional<int> signal_code();

 private:
  bool go_on(std::uint64_t read_bytes, std::uint64_t all_bytes);

  const std::string subcommand_;
  const bool terminal_;
  std::chrono::steady_clock::time_point next_line_;
  bool has_line_ = false, ended_ = false;
};

}  // namespace ringlet::command
