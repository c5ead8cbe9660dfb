#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "tools/launch/uv_handles.hpp"

namespace ringlet::launch {

/// Writes to one of the launcher's own descriptors (terminal, pipe, socket or file) without blocking the loop and without leaving it
/// non-blocking: whoever shares the terminal or pipe would be surprised by that.
class OutputStream {
 public:
  /// More queued bytes than this: the caller should stop adding until `on_drained`.
  static constexpr std::size_t kCongestedBytes = 1 << 20;

  OutputStream(uv_loop_t* loop, int fd);

  /// Queues and writes what can be written now. Does nothing once the descriptor has failed.
  void write(std::string_view bytes);
  bool congested() const noexcept { return pending() > kCongestedBytes; }
  bool idle() const noexcept { return pending() == 0; }
  /// Drops what is queued and all that comes later.
  void discard();

  std::function<void()> on_drained;    // called whenever the queue has become empty
  std::function<void(int)> on_failed;  // called once, with errno: EPIPE, ENOSPC, EIO

 private:
  std::size_t pending() const noexcept { return queue_.size() - written_; }
  void flush();
  bool writable_now() const;

  int fd_;
  UvPoll poll_;
  bool pollable_ = false;
  bool discarding_ = false;
  bool waiting_ = false;
  std::string queue_;
  std::size_t written_ = 0;  // leading bytes of the queue that are out already
};

}  // namespace ringlet::launch
