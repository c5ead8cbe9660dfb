#pragma once

#include <exception>
#include <memory>

#include "core/ports/event_loop.hpp"
#include "core/ports/poll_source.hpp"

struct uv_loop_s;

namespace ringlet {

namespace uv {
class LoopState;
}

/// The event loop on libuv. It belongs to one thread at a time, which may change: only that thread may call poll(), wait(), flush() and the
/// members of EventLoop, or use links and networks of this loop. Threads that take turns hand it over under a mutex. post() and wake() may
/// be called from any thread at any time.
///
/// Networks must be destroyed before the loop. Links and listeners should be, too: the remaining ones are closed and do nothing any more.
/// Tasks that have not run are dropped. The destructor waits for host names that are still being looked up.
class UvLoop final : public EventLoop, public PollSources {
 public:
  UvLoop();
  ~UvLoop() override;
  UvLoop(const UvLoop&) = delete;
  UvLoop& operator=(const UvLoop&) = delete;

  /// Returns the time at which the current callback began; between turns, the time of the call.
  Instant now() const override;
  /// Runs `task` at the end of the current dispatch; between turns, in the next flush(), poll() or wait().
  void defer(Task task) override;
  TimerId after(Duration delay, Task task) override;
  void cancel(TimerId id) override;
  void add_source(PollSource& source) override;
  void remove_source(PollSource& source) override;

  /// May be called from any thread. Runs `task` in a turn of the loop, in the order of the calls; ends a blocked wait().
  void post(Task task);
  /// May be called from any thread. Makes a blocked wait() return soon, or the next one if none is blocked.
  void wake();

  // A turn, and flush(), throw what a task or a callback has thrown.

  /// Runs one turn that does not block, and returns whether anything happened. It tries the links and sources directly, and asks the system
  /// about new connections and stalled writes only in some turns, so it must be called repeatedly.
  bool poll();
  /// Runs one turn that blocks until something happens, a timer runs, or post() or wake() is called. It may return without any of these.
  void wait();
  /// Runs posted and deferred tasks, and sends for links that were woken, without looking for new events. Returns whether there was
  /// anything to do. Between turns this starts new work at once; inside a turn it does nothing, because the turn does the same later.
  bool flush();

  /// Returns the libuv loop, for handles that do not belong to this folder. Their callbacks may call defer(), wake(), post() and
  /// Link::wake(), and nothing else of this loop; they may not throw, but give an exception to keep_failure(), and the turn throws it. They
  /// must be closed before the loop is destroyed.
  uv_loop_s* uv() noexcept;
  static void keep_failure(uv_loop_s* loop, std::exception_ptr failure) noexcept;

  /// Closes all sockets at once, after a turn has thrown: the objects that use this loop may be in any state then. The loop may not be
  /// turned any more, nor these objects used or destroyed; what it owns itself is not destroyed.
  void cut_off() noexcept;

  /// Used by the other classes of this folder.
  uv::LoopState& state() noexcept { return *state_; }

 private:
  std::unique_ptr<uv::LoopState> state_;
  bool cut_off_ = false;
};

}  // namespace ringlet
