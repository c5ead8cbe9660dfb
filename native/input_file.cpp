#include "native/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/unique_fd.hpp"

namespace ringlet::native {

namespace {

/// Fills the text, or cuts it to what there is. Returns the reason why it cannot be read, or nothing.
std::string read_to_end(int file, std::chrono::milliseconds longest_silence, std::string& text) {
  std::size_t length = 0;
  while (length < text.size()) {
    pollfd ready{file, POLLIN, 0};
    const int events = ::poll(&ready, 1, static_cast<int>(longest_silence.count()));
    if (events == 0) return fmt::format("it is a pipe or a device from which nothing came for {} s", longest_silence.count() / 1000);
    const ssize_t count = events < 0 ? -1 : ::read(file, &text[length], text.size() - length);
    if (count < 0 && errno != EINTR && errno != EAGAIN) return std::strerror(errno);
    if (count == 0) break;
    if (count > 0) length += static_cast<std::size_t>(count);
  }
  text.resize(length);
  return {};
}

}  // namespace

Result<std::string> read_input_file(const std::string& path, const InputLimits& limits) {
  std::string text(limits.most_bytes + 1, '\0');
  // Opening a FIFO would wait for a writer otherwise, without an end.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return Status(Errc::io_error, std::strerror(errno));
  std::string reason = read_to_end(file.get(), limits.longest_silence, text);
  if (reason.empty() && text.size() > limits.most_bytes) reason = fmt::format("it is longer than {} bytes", limits.most_bytes);
  if (!reason.empty()) return Status(Errc::io_error, std::move(reason));
  return text;
}

}  // namespace ringlet::native
