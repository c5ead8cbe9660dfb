#include "lock.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace ringlet::python {
namespace {

std::atomic<int> waiting_for_lock{0};
std::atomic<bool> exits{false};
std::atomic<std::thread::id> exiting_thread;

[[noreturn]] void stop_here() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

WithoutLock::~WithoutLock() {
  ++waiting_for_lock;
  if (exits && exiting_thread.load() != std::this_thread::get_id()) {
    --waiting_for_lock;
    stop_here();
  }
  PyEval_RestoreThread(thread_);
  --waiting_for_lock;
}

void begin_exit() {
  constexpr std::chrono::milliseconds kPause{1};
  constexpr int kPauses = 1000;
  exiting_thread = std::this_thread::get_id();
  exits = true;
  // Those that had begun to wait for the lock get it now, and stop when they want it again.
  PyThreadState* thread = PyEval_SaveThread();
  for (int pause = 0; pause < kPauses && waiting_for_lock > 0; ++pause) std::this_thread::sleep_for(kPause);
  PyEval_RestoreThread(thread);
}

}  // namespace ringlet::python
