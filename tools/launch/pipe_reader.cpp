#include "tools/launch/pipe_reader.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "tools/launch/launch_error.hpp"

namespace ringlet::launch {

PipeReader::PipeReader(uv_loop_t* loop, UniqueFd fd, std::function<void(std::string_view)> on_bytes, std::function<void()> on_end)
    : fd_(std::move(fd)), on_bytes_(std::move(on_bytes)), on_end_(std::move(on_end)) {
  if (const int error = poll_.emplace().open(loop, fd_.get()); error != 0)
    throw LaunchError(1, std::string("cannot watch a rank's output: ") + uv_strerror(error));
  poll_->start(UV_READABLE, [this] { read_some(); });
}

void PipeReader::pause() {
  if (ended() || paused_) return;
  paused_ = true;
  poll_->stop();
}

void PipeReader::resume() {
  if (ended() || !paused_) return;
  paused_ = false;
  poll_->start(UV_READABLE, [this] { read_some(); });
}

void PipeReader::read_present_bytes() {
  for (int bytes = 0; !ended() && ::ioctl(fd_.get(), FIONREAD, &bytes) == 0 && bytes > 0;) read_some();
}

void PipeReader::end_after_present_bytes() {
  if (ended() || draining_) return;
  draining_ = true;
  if (::ioctl(fd_.get(), FIONREAD, &bytes_left_) != 0 || bytes_left_ == 0) end();
}

void PipeReader::read_some() {
  std::array<char, 64 * 1024> buffer;
  const ssize_t count = ::read(fd_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    end();
    return;
  }
  on_bytes_({buffer.data(), static_cast<std::size_t>(count)});
  if (!draining_ || ended()) return;
  bytes_left_ -= static_cast<int>(count);
  if (bytes_left_ <= 0) end();
}

void PipeReader::end() {
  // A libuv poll handle touches its descriptor's number until it is closed; by then the number could be another's.
  poll_.reset();
  fd_.reset();
  on_end_();
}

}  // namespace ringlet::launch
