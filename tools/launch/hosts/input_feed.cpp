#include "tools/launch/hosts/input_feed.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace ringlet::launch {

InputFeed::InputFeed(uv_loop_t* loop, std::function<void(std::string_view)> on_bytes) : on_bytes_(std::move(on_bytes)) {
  const int flags = ::fcntl(STDIN_FILENO, F_GETFL);
  pollable_ = poll_.open(loop, STDIN_FILENO) == 0;
  // Other processes share standard input, and do not expect EAGAIN.
  if (flags >= 0) ::fcntl(STDIN_FILENO, F_SETFL, flags);
}

void InputFeed::read_next() {
  if (ended_) return;
  if (pollable_)
    poll_.start(UV_READABLE, [this] { read_some(); });
  else
    read_some();
}

void InputFeed::read_some() {
  std::array<char, 64 * 1024> buffer;
  ssize_t count = 0;
  do count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) return;
  if (pollable_) poll_.stop();
  ended_ = count <= 0;
  on_bytes_({buffer.data(), static_cast<std::size_t>(ended_ ? 0 : count)});
}

}  // namespace ringlet::launch
