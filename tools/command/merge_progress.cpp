#include "tools/command/merge_progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "tools/launch/standard_error.hpp"

namespace ringlet::command {

namespace {

constexpr std::chrono::seconds kQuietTime{2};
constexpr std::chrono::milliseconds kLineInterval{500};

}  // namespace

MergeProgress::MergeProgress(std::string subcommand)
    : subcommand_(std::move(subcommand)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      next_line_(std::chrono::steady_clock::now() + kQuietTime) {}

void MergeProgress::end() {
  if (std::exchange(has_line_, false)) launch::print_error("\r\x1b[K");
}

trace::MergeWatch MergeProgress::watch() {
  return [this](std::uint64_t read_bytes, std::uint64_t all_bytes) { return go_on(read_bytes, all_bytes); };
}

bool MergeProgress::go_on(std::uint64_t read_bytes, std::uint64_t all_bytes) {
  const auto now = std::chrono::steady_clock::now();
  if (terminal_ && now >= next_line_) {
    next_line_ = now + kLineInterval;
    has_line_ = true;
    launch::print_error("\rringlet {}: merging the trace, {} of {} MiB", subcommand_, read_bytes >> 20, all_bytes >> 20);
  }
  return !signals_.came();
}

}  // namespace ringlet::command
