#pragma once

#include <nanobind/nanobind.h>

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

/// The program ends by this thread, which holds the lock: from now on no other one gets it from WithoutLock.
void begin_exit();

}  // namespace ringlet::python
