#pragma once

#include <nanobind/nanobind.h>

namespace ringlet_mlx {

/// Without the interpreter's lock, if this thread has it; MLX calls groups both ways.
class WithoutLock {
 public:
  WithoutLock() : state_(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;
  ~WithoutLock() {
    if (state_) PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* state_;
};

/// With the interpreter's lock, whether or not this thread has it.
using WithLock = nanobind::gil_scoped_acquire;

/// Throws the Python exception that is set.
[[noreturn]] inline void throw_raised() { throw nanobind::python_error(); }

}  // namespace ringlet_mlx
