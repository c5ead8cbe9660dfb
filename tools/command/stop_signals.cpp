#include "tools/command/stop_signals.hpp"

#include <signal.h>

#include <atomic>

namespace ringlet::command {

namespace {

std::atomic<UvLoop*> woken_loop{nullptr};
std::atomic<int> received_signal{0};
static_assert(std::atomic<UvLoop*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// A signal handler may call wake(), because it uses only libuv's wake-up, which is safe there.
void on_signal(int number) {
  received_signal = number;
  if (UvLoop* loop = woken_loop) loop->wake();
}

}  // namespace

StopSignals::StopSignals(UvLoop* loop) {
  received_signal = 0;
  woken_loop = loop;
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    // Under nohup a hang-up stays ignored. A shell's background job ignores SIGINT, too, but ends by one that is sent to it.
    if (kSignals[i] != SIGHUP || before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  woken_loop = nullptr;
}

bool StopSignals::came() const noexcept { return received_signal != 0; }

int StopSignals::exit_code() const noexcept { return 128 + received_signal; }

}  // namespace ringlet::command
