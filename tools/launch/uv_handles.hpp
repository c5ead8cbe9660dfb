#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/launch/launch_error.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet::launch {

/// A libuv handle with the callback that it calls. libuv owns the memory until the close callback has run, so the box outlives this object;
/// a callback may therefore destroy its own handle.
template <class Handle, class... Args>
class UvHandle {
 public:
  UvHandle(const UvHandle&) = delete;
  UvHandle& operator=(const UvHandle&) = delete;

 protected:
  struct Box {
    Handle handle{};
    std::function<void(Args...)> on_event;
  };

  UvHandle() : box_(new Box) { box_->handle.data = box_; }
  ~UvHandle() {
    if (!initialised_) {
      delete box_;
      return;
    }
    uv_close(reinterpret_cast<uv_handle_t*>(&box_->handle), [](uv_handle_t* handle) { delete static_cast<Box*>(handle->data); });
  }

  Handle* handle() noexcept { return &box_->handle; }
  void mark_initialised() noexcept { initialised_ = true; }
  void set_callback(std::function<void(Args...)> on_event) { box_->on_event = std::move(on_event); }
  static void fire(Handle* handle, Args... args) noexcept {
    try {
      static_cast<Box*>(handle->data)->on_event(args...);
    } catch (...) {
      UvLoop::keep_failure(handle->loop, std::current_exception());
    }
  }

 private:
  Box* box_;
  bool initialised_ = false;
};

class UvSignal : public UvHandle<uv_signal_t, int> {
 public:
  UvSignal(uv_loop_t* loop, int signal_number, std::function<void(int)> on_event) {
    check(uv_signal_init(loop, handle()));
    mark_initialised();
    set_callback(std::move(on_event));
    check(uv_signal_start(handle(), [](uv_signal_t* watched, int number) { fire(watched, number); }, signal_number));
  }

 private:
  static void check(int error) {
    if (error != 0) throw LaunchError(1, std::string("cannot listen for signals: ") + uv_strerror(error));
  }
};

/// Readiness of a descriptor that someone else owns and closes after this object is gone.
class UvPoll : public UvHandle<uv_poll_t> {
 public:
  /// Returns 0 or a libuv error; UV_EPERM where the descriptor is always ready (a regular file). Sets O_NONBLOCK.
  int open(uv_loop_t* loop, int fd) {
    const int error = uv_poll_init(loop, handle(), fd);
    if (error == 0) mark_initialised();
    return error;
  }
  /// An error on the descriptor counts as ready: the read or write that follows finds it.
  void start(int events, std::function<void()> on_event) {
    set_callback(std::move(on_event));
    // This fails only for events that do not exist.
    uv_poll_start(handle(), events, [](uv_poll_t* poll, int, int) { fire(poll); });
  }
  void stop() { uv_poll_stop(handle()); }
};

/// A program to start, as the leader of a session of its own.
struct ChildOptions {
  std::vector<std::string> arguments;                     // the program is the first
  std::vector<int> descriptors;                           // the child's 0, 1, 2 and so on; -1: /dev/null, or closed beyond these three
  std::optional<std::vector<std::string>> environment{};  // "NAME=VALUE"; unset: this process' own
  std::string directory{};                                // empty: this process' own
};

class UvProcess : public UvHandle<uv_process_t, std::int64_t, int> {
 public:
  UvProcess() = default;
  ~UvProcess();
  /// Starts a process; `on_exit` gets its exit status and the signal that killed it, or 0. Returns 0 or a libuv error.
  int spawn(uv_loop_t* loop, ChildOptions child, std::function<void(std::int64_t, int)> on_exit);
  int pid() { return handle()->pid; }
};

/// Waits for those children of this process that have ended and that no UvProcess stands for: descendants of ranks that have left their
/// process group, and that adopt_orphans() has made children. Belongs to the loop's thread; to be called at SIGCHLD.
void reap_adopted();

}  // namespace ringlet::launch
