#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <optional>
#include <ringlet/status.hpp>
#include <utility>

#include "lock.hpp"

namespace ringlet::python {

namespace nb = nanobind;

/// Throws what Python code has raised as the library's error of the same kind, if it is one of these, so that the library's own code may
/// act on it: where it leaves the library, it is the same object again. Otherwise throws it as it is.
[[noreturn]] void rethrow(nb::python_error& raised);

/// What the handlers of signals raise while the library waits in calling_back().
class RaisedBySignals {
 public:
  RaisedBySignals() : outer_(std::exchange(signal_scope, is_main_thread() ? this : nullptr)) {}
  RaisedBySignals(const RaisedBySignals&) = delete;
  RaisedBySignals& operator=(const RaisedBySignals&) = delete;
  ~RaisedBySignals() { signal_scope = outer_; }

  /// `InitOptions::interrupted` of all groups: runs the handlers, and says whether one of them has raised.
  static bool look();
  /// Throws what was raised, if anything was.
  void rethrow();

 private:
  RaisedBySignals* const outer_;
  std::optional<nb::python_error> raised_;
};

/// Runs library code that calls Python back on this same thread: without the interpreter's lock, which call_python() takes. What a handler
/// of a signal raises meanwhile ends the world, and is thrown.
template <class Function>
auto calling_back(Function function) {
  RaisedBySignals raised;
  std::optional<decltype(function())> result;
  try {
    const WithoutLock unlocked;
    result.emplace(function());
  } catch (...) {
    raised.rethrow();
    throw;
  }
  raised.rethrow();
  return std::move(*result);
}

/// Runs Python code within calling_back().
template <class Function>
void call_python(Function function) {
  with_lock([&] {
    try {
      function();
    } catch (nb::python_error& raised) {
      rethrow(raised);
    }
  });
}

/// Runs a task that calls Python, under the interpreter's lock, on the one thread that the library has for such calls; one after the other.
/// Any thread, with the lock or without. After stop_callbacks() it does nothing: so a task keeps references as plain pointers, and drops
/// them itself. Where it throws what Python has raised, that is reported as an error of `what`.
void call_later(std::function<void()> task, const char* what);

/// Runs a task under the interpreter's lock now, on this thread; not after stop_callbacks(), which waits for it.
void run_while_alive(const std::function<void()>& task, const char* what);

/// An object of Python's that may be copied, used under the interpreter's lock, and dropped on any thread. One that is dropped when the
/// interpreter ends is left to the process' end.
inline std::shared_ptr<nb::object> shared_object(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* owned) { run_while_alive([owned] { delete owned; }, "ringlet"); }};
}

}  // namespace ringlet::python
