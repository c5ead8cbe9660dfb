#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <type_traits>
#include <utility>

namespace ringlet::python {

/// Gives the interpreter's lock back for a scope, as nanobind's gil_scoped_release does. A thread that wants it again while the program
/// ends stops there: Python up to 3.13 would end the thread within this destructor, which aborts the process.
class WithoutLock {
 public:
  WithoutLock() : thread_(PyEval_SaveThread()) {}
  ~WithoutLock();
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;

 private:
  PyThreadState* thread_;
};

class RaisedBySignals;
/// Where this thread waits in calling_back(), if it is the one that Python runs handlers of signals on. Python code that the library calls
/// meanwhile looks for signals itself.
inline thread_local RaisedBySignals* signal_scope = nullptr;

/// The scope of with_lock().
class WithLock {
 public:
  WithLock();
  ~WithLock();
  WithLock(const WithLock&) = delete;
  WithLock& operator=(const WithLock&) = delete;

  /// Says that the scope ends by a return or an exception, so by a thread that has the lock.
  void leave() { leaves_ = true; }

 private:
  PyGILState_STATE state_;
  RaisedBySignals* const outer_scope_;
  bool leaves_ = false;
};

/// Calls a function with the interpreter's lock, on any thread. nanobind's gil_scoped_acquire may not be used: where the program ends, a
/// thread that wants the lock stops here, for the reason that WithoutLock gives, also if it wants it again within Python's code.
template <class Function>
auto with_lock(Function function) {
  WithLock locked;
  try {
    if constexpr (std::is_void_v<decltype(function())>) {
      function();
      locked.leave();
    } else {
      auto result = function();
      locked.leave();
      return result;
    }
  } catch (const std::exception&) {
    locked.leave();
    throw;
  }
}

/// The program ends by this thread, which holds the lock: from now on no other one gets it from WithoutLock or with_lock(). Functions that
/// with_lock() runs have a second to end.
void begin_exit();

/// Forgets the threads of the process that this one was forked from, and learns which one is the main thread.
void begin_threads();
/// Whether this is the thread that Python runs handlers of signals on.
bool is_main_thread();

}  // namespace ringlet::python
