#include "tools/command/progress_line.hpp"

#include <unistd.h>

#include <utility>

#include "tools/launch/standard_error.hpp"

namespace ringlet::command {

namespace {

constexpr std::chrono::milliseconds kInterval{500};
constexpr char kClearLine[] = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine(std::string subcommand, std::chrono::milliseconds quiet_time)
    : subcommand_(std::move(subcommand)), terminal_(::isatty(STDERR_FILENO) == 1), next_(std::chrono::steady_clock::now() + quiet_time) {}

bool ProgressLine::due() const { return terminal_ && std::chrono::steady_clock::now() >= next_; }

void ProgressLine::show(std::string_view text) {
  if (!due()) return;
  next_ = std::chrono::steady_clock::now() + kInterval;
  shown_ = true;
  launch::print_error("{}ringlet {}: {}", kClearLine, subcommand_, text);
}

void ProgressLine::end() {
  if (std::exchange(shown_, false)) launch::print_error(kClearLine);
}

}  // namespace ringlet::command
