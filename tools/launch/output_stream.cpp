#include "tools/launch/output_stream.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace ringlet::launch {

OutputStream::OutputStream(uv_loop_t* loop, int fd) : fd_(fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  pollable_ = poll_.open(loop, fd) == 0;
  if (flags >= 0) ::fcntl(fd, F_SETFL, flags);
}

void OutputStream::write(std::string_view bytes) {
  if (discarding_ || bytes.empty()) return;
  queue_.append(bytes);
  if (!waiting_) flush();
}

void OutputStream::discard() {
  discarding_ = true;
  queue_.clear();
  written_ = 0;
  if (waiting_) poll_.stop();
  waiting_ = false;
}

bool OutputStream::writable_now() const {
  pollfd entry{fd_, POLLOUT, 0};
  return ::poll(&entry, 1, 0) > 0;
}

void OutputStream::flush() {
  while (pending() > 0) {
    bool blocked = pollable_ && !writable_now();
    if (!blocked) {
      // A pipe that polls writable takes PIPE_BUF bytes without blocking, and no more is certain.
      const std::size_t bytes = pollable_ ? std::min<std::size_t>(pending(), PIPE_BUF) : pending();
      const ssize_t count = ::write(fd_, queue_.data() + written_, bytes);
      if (count >= 0) written_ += static_cast<std::size_t>(count);
      if (count < 0 && errno == EINTR) continue;
      blocked = count < 0 && errno == EAGAIN;
      if (count < 0 && !blocked) {
        const int error = errno;
        discard();
        if (on_failed) on_failed(error);
        return;
      }
    }
    if (blocked) {
      if (!waiting_) poll_.start(UV_WRITABLE, [this] { flush(); });
      waiting_ = true;
      return;
    }
  }
  queue_.clear();
  written_ = 0;
  if (waiting_) poll_.stop();
  waiting_ = false;
  if (on_drained) on_drained();
}

}  // namespace ringlet::launch
