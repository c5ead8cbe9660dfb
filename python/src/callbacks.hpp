#pragma once

#include <nanobind/nanobind.h>

#include <ringlet/status.hpp>
#include <utility>

namespace ringlet::python {

namespace nb = nanobind;

/// Throws what Python code has raised as the library's error of the same kind, if it is one of these, so that the library's own code may
/// act on it; otherwise throws it as it is.
[[noreturn]] void rethrow(nb::python_error& raised);

/// Runs library code that calls Python back on this same thread: without the interpreter's lock, which call_python() takes.
template <class Function>
auto calling_back(Function function) {
  const nb::gil_scoped_release unlocked;
  return function();
}

/// Runs Python code within calling_back().
template <class Function>
void call_python(Function function) {
  const nb::gil_scoped_acquire locked;
  try {
    function();
  } catch (nb::python_error& raised) {
    rethrow(raised);
  }
}

}  // namespace ringlet::python
