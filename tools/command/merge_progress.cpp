#include "tools/command/merge_progress.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <utility>

namespace ringlet::command {

namespace {

constexpr std::array kEndingSignals{SIGINT, SIGTERM};
constexpr std::chrono::seconds kQuietTime{2};
constexpr std::chrono::milliseconds kLineInterval{500};

std::atomic<int> signal_while_merging{0};
static_assert(std::atomic<int>::is_always_lock_free);
std::array<struct sigaction, kEndingSignals.size()> handled_before;

void remember_signal(int number) { signal_while_merging = number; }

}  // namespace

MergeProgress::MergeProgress(std::string subcommand)
    : subcommand_(std::move(subcommand)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      next_line_(std::chrono::steady_clock::now() + kQuietTime) {
  signal_while_merging = 0;
  struct sigaction action{};
  action.sa_handler = remember_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i) {
    ::sigaction(kEndingSignals[i], nullptr, &handled_before[i]);
    // What was started in the background, or with nohup, is meant to outlive it.
    if (handled_before[i].sa_handler != SIG_IGN) ::sigaction(kEndingSignals[i], &action, nullptr);
  }
}

MergeProgress::~MergeProgress() { end(); }

void MergeProgress::end() {
  if (std::exchange(ended_, true)) return;
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i) ::sigaction(kEndingSignals[i], &handled_before[i], nullptr);
  if (has_line_) std::fputs("\r\x1b[K", stderr);
}

trace::MergeWatch MergeProgress::watch() {
  return [this](std::uint64_t read_bytes, std::uint64_t all_bytes) { return go_on(read_bytes, all_bytes); };
}

std::optional<int> MergeProgress::signal_code() {
  const int number = signal_while_merging;
  return number == 0 ? std::nullopt : std::optional(128 + number);
}

bool MergeProgress::go_on(std::uint64_t read_bytes, std::uint64_t all_bytes) {
  const auto now = std::chrono::steady_clock::now();
  if (terminal_ && now >= next_line_) {
    next_line_ = now + kLineInterval;
    has_line_ = true;
    const std::string line = fmt::format("\rringlet {}: merging the trace, {} of {} MiB", subcommand_, read_bytes >> 20, all_bytes >> 20);
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fflush(stderr);
  }
  return !signal_code();
}

}  // namespace ringlet::command
