#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "tools/launch/uv_handles.hpp"

namespace ringlet::launch {

/// Writes to one of the launcher's own descriptors (terminal, pipe, socket or file) without blocking the loop and without leaving it
/// non-blocking, which other programs on the same terminal or pipe do not expect.
class OutputStream {
 public:
  /// Beyond so many queued bytes the caller should stop adding until `on_drained`.
  static constexpr std::size_t kCongestedBytes = 1 << 20;

  OutputStream(uv_loop_t* loop, int fd);

  /// Queues the bytes, and writes as many as the descriptor takes now. Does nothing once the descriptor has failed.
  void write(std::string_view bytes);
  bool congested() const noexcept { return pending() > kCongestedBytes; }
  bool idle() const noexcept { return pending() == 0; }
  /// Drops the queued bytes and all later ones.
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
