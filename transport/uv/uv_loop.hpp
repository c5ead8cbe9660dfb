#pragma once

#include <memory>

#include "core/ports/event_loop.hpp"

struct uv_loop_s;

namespace ringlet {

namespace uv {
class LoopState;
}

/// The event loop on libuv. It is bound to no thread, but belongs to one thread at a time: whoever calls poll(), wait(), flush() or any
/// member of the port, or touches a link or network of this loop, must have it alone (and, between threads, handed over under a mutex).
/// Only post() and wake() may be called from any thread at any time.
///
/// Networks are destroyed before the loop; links and listeners should be, too: those that are left are closed and do nothing any more.
/// Tasks that have not run by then are dropped. Destruction waits for host names that are still being looked up.
class UvLoop final : public EventLoop {
 public:
  UvLoop();
  ~UvLoop() override;
  UvLoop(const UvLoop&) = delete;
  UvLoop& operator=(const UvLoop&) = delete;

  /// The time at the beginning of the current callback; between turns, the time of the call.
  Instant now() const override;
  /// Runs `task` at the end of the current dispatch; between turns, in the next flush(), poll() or wait().
  void defer(Task task) override;
  TimerId after(Duration delay, Task task) override;
  void cancel(TimerId id) override;

  /// Any thread. Runs `task` in a turn of the loop, in the order of the calls; ends a blocked wait().
  void post(Task task);
  /// Any thread. Makes a blocked wait() return soon, or the next one if none is blocked.
  void wake();

  /// One turn that does not block; returns whether anything happened. Tries the links directly and asks the system about the rest (new
  /// connections, stalled writes) only now and then, so it is meant to be called again and again.
  bool poll();
  /// One turn that blocks until something happened, a timer ran, or post() or wake() came. May return early with nothing done.
  void wait();
  /// Runs posted and deferred tasks and writes what woken links have to send, without looking for new events; returns whether there was
  /// any. Between turns this pushes out what was just started; inside a turn it does nothing, since the turn does it.
  bool flush();

  /// For libuv handles of others. Their callbacks may call defer(), wake() and post(), and links' wake(), and nothing else of this loop;
  /// they are closed before it is destroyed.
  uv_loop_s* uv() noexcept;

  /// For the other classes of this folder.
  uv::LoopState& state() noexcept { return *state_; }

 private:
  std::unique_ptr<uv::LoopState> state_;
};

}  // namespace ringlet
