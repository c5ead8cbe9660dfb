#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace ringlet::command {

/// A line on stderr, where that is a terminal, that says how far long work is. Belongs to one thread.
class ProgressLine {
 public:
  /// `subcommand` stands before the line, which is shown once the work has taken `quiet_time`.
  explicit ProgressLine(std::string subcommand, std::chrono::milliseconds quiet_time = std::chrono::seconds(2));
  ~ProgressLine() { end(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Whether show() would show a line now, so that it need not be written for nothing.
  bool due() const;
  void show(std::string_view text);
  /// Takes the line away.
  void end();

 private:
  const std::string subcommand_;
  const bool terminal_;
  std::chrono::steady_clock::time_point next_;
  bool shown_ = false;
};

}  // namespace ringlet::command
