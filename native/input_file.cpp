#include "native/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/unique_fd.hpp"

namespace ringlet::native {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSlice{100};

/// Fills the text, or cuts it to what there is.
Status read_to_end(int file, const InputLimits& limits, std::string& text) {
  std::size_t length = 0;
  auto last_byte = Clock::now();
  while (length < text.size()) {
    pollfd ready{file, POLLIN, 0};
    const int events = ::poll(&ready, 1, static_cast<int>(std::min(kSlice, limits.longest_silence).count()));
    if (limits.interrupted && limits.interrupted()) return {Errc::cancelled, "reading it was interrupted"};
    if (events == 0 && Clock::now() - last_byte >= limits.longest_silence)
      return {Errc::io_error,
              fmt::format("it is a pipe or a device from which nothing came for {} s", limits.longest_silence.count() / 1000)};
    if (events == 0) continue;
    const ssize_t count = events < 0 ? -1 : ::read(file, &text[length], text.size() - length);
    if (count < 0 && errno != EINTR && errno != EAGAIN) return {Errc::io_error, std::strerror(errno)};
    if (count == 0) break;
    if (count < 0) continue;
    length += static_cast<std::size_t>(count);
    last_byte = Clock::now();
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
  if (Status status = read_to_end(file.get(), limits, text); !status.ok()) return status;
  if (text.size() > limits.most_bytes) return Status(Errc::io_error, fmt::format("it is longer than {} bytes", limits.most_bytes));
  return text;
}

}  // namespace ringlet::native
