#include "tools/command/stop_signals.hpp"

#include <signal.h>

#include <array>
#include <atomic>

namespace ringlet::command {

namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
std::atomic<UvLoop*> woken_loop{nullptr};
std::atomic<int> received_signal{0};
static_assert(std::atomic<UvLoop*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// A signal handler may call wake(), because it uses only libuv's wake-up, which is safe there.
void on_signal(int number) {
  received_signal = number;
  if (UvLoop* loop = woken_loop) loop->wake();
}

void handle_all(void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int number : kSignals) {
    struct sigaction before{};
    ::sigaction(number, nullptr, &before);
    // nohup ignores SIGHUP, and that setting is kept.
    if (number == SIGHUP && before.sa_handler == SIG_IGN) continue;
    ::sigaction(number, &action, nullptr);
  }
}

}  // namespace

StopSignals::StopSignals(UvLoop& loop) {
  woken_loop = &loop;
  handle_all(on_signal);
}

StopSignals::~StopSignals() {
  handle_all(SIG_DFL);
  woken_loop = nullptr;
}

bool StopSignals::came() const noexcept { return received_signal != 0; }

int StopSignals::exit_code() const noexcept { return 128 + received_signal; }

}  // namespace ringlet::command
