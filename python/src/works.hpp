#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <ringlet/group.hpp>
#include <vector>

#include "arrays.hpp"

namespace ringlet::python {

/// How long a thread waits before it looks for signals, such as that of Ctrl-C.
inline constexpr std::chrono::milliseconds kSlice{100};

/// What a duration may be.
struct SecondsRange {
  bool has_zero = true;
  const char* most = "1e9";
};
/// A duration in seconds, as Python's functions take it; nothing for None. Throws `InvalidArgument`, with the argument's name.
std::optional<std::chrono::milliseconds> milliseconds_of(std::optional<double> seconds, const char* name, SecondsRange range = {});
/// The options of a call.
CallOptions options_of(int stream, std::optional<double> timeout, bool waits_at_once = false);

/// A handle of an operation that runs. The library's Work waits when it is destroyed; here the operation and the arrays that it borrows are
/// kept until it has ended, whether or not a handle is left. All members are for threads that hold the interpreter's lock.
class Operation {
 public:
  /// Takes an operation that was started on the memory of `arrays`, and on `source` if it is a receive from any rank.
  Operation(Work work, std::vector<ArrayView> arrays, std::shared_ptr<int> source = nullptr);

  /// Waits until the operation has ended, at most for `timeout`, and returns whether it has. Throws its error, and what a signal's handler
  /// has thrown; the operation then goes on. The interpreter's lock is free meanwhile.
  bool wait(std::optional<std::chrono::milliseconds> timeout);
  /// Whether the operation has ended.
  bool done() const;
  /// Calls `function` once the operation has ended, or soon if it has already, with its error, or with None. It runs on the library's
  /// thread for such calls, also if this handle is gone by then; not after stop_callbacks().
  void on_done(nb::callable function);
  /// The rank that a receive from any rank has received from; -1 until it has ended, and of other operations.
  int source() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// Waits for all operations that run, at most for `timeout`.
void await_operations(std::chrono::milliseconds timeout);
/// Lets the call of Operation::on_done() that runs end, and allows no more of them: a thread that asks for the interpreter's lock when the
/// interpreter has ended brings the process down.
void stop_callbacks();

void bind_works(nb::module_& module);

}  // namespace ringlet::python
