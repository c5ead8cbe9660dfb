#include "lock.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace ringlet::python {

namespace nb = nanobind;

namespace {

std::atomic<int> waiting_for_lock{0};
std::atomic<int> within_lock{0};        // scopes of with_lock() that threads are in
thread_local int within_lock_here = 0;  // those of this thread
std::atomic<bool> exits{false};
std::atomic<std::thread::id> exiting_thread;
unsigned long main_thread = 0;  // as Python numbers threads

/// A destructor that wants the lock neither returns without it nor lets Python end the thread, so the thread waits for the process' end.
[[noreturn]] void stop_here() {
  within_lock -= within_lock_here;
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

bool ends_by_another_thread() { return exits && exiting_thread.load() != std::this_thread::get_id(); }

/// Calls what takes the lock.
template <class Take>
void take_lock(Take take) {
  ++waiting_for_lock;
  if (ends_by_another_thread()) {
    --waiting_for_lock;
    stop_here();
  }
  take();
  --waiting_for_lock;
}

}  // namespace

WithoutLock::~WithoutLock() {
  take_lock([this] { PyEval_RestoreThread(thread_); });
}

WithLock::WithLock() : outer_scope_(std::exchange(signal_scope, nullptr)) {
  take_lock([this] {
    state_ = PyGILState_Ensure();
    ++within_lock;
    ++within_lock_here;
  });
}

WithLock::~WithLock() {
  signal_scope = outer_scope_;
  // Python up to 3.13 ends a thread that wants the lock again while the interpreter ends; it comes by here without the lock.
  if (!leaves_ && ends_by_another_thread()) stop_here();
  PyGILState_Release(state_);
  --within_lock_here;
  --within_lock;
}

void begin_exit() {
  constexpr std::chrono::milliseconds kPause{1};
  constexpr int kPauses = 1000;
  exiting_thread = std::this_thread::get_id();
  exits = true;
  // Those that had begun to wait for the lock get it now, and stop when they want it again.
  PyThreadState* thread = PyEval_SaveThread();
  for (int pause = 0; pause < kPauses && waiting_for_lock + within_lock > 0; ++pause) std::this_thread::sleep_for(kPause);
  PyEval_RestoreThread(thread);
}

void begin_threads() {
  waiting_for_lock = 0;
  within_lock = within_lock_here;
  exits = false;
  main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
}

bool is_main_thread() { return PyThread_get_thread_ident() == main_thread; }

}  // namespace ringlet::python
