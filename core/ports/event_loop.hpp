#pragma once

#include <cstdint>
#include <functional>

#include "core/base/time.hpp"

namespace ringlet {

using Task = std::function<void()>;
using TimerId = std::uint64_t;

/// The loop that drives the core. One thread uses it at a time. Tasks run on the loop, never inside the call that was given them.
class EventLoop {
 public:
  virtual ~EventLoop() = default;
  /// The current time. It is constant within one callback.
  virtual Instant now() const = 0;
  /// Runs `task` once, after the current callback has returned, in the order of the calls.
  virtual void defer(Task task) = 0;
  /// Runs `task` once, not before `delay` has passed. The id is never 0.
  virtual TimerId after(Duration delay, Task task) = 0;
  /// Prevents the task from running. An id whose task has run or was cancelled already is ignored.
  virtual void cancel(TimerId id) = 0;
};

}  // namespace ringlet
