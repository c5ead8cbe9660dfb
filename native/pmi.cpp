#include "native/pmi.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ringlet/error.hpp>
#include <utility>

#include "transport/uv/socket.hpp"

namespace ringlet::native {

namespace {

#ifdef MSG_NOSIGNAL
constexpr int kNoSignal = MSG_NOSIGNAL;
#else
constexpr int kNoSignal = 0;
#endif
constexpr int kSliceMilliseconds = 50;
constexpr std::size_t kLongestLine = 4096;  // the protocol's values have 1024 characters

/// The value of `name` in "cmd=get_result rc=0 msg=success value=host:1"; values have no spaces.
std::optional<std::string> field(const std::string& line, const std::string& name) {
  for (std::size_t begin = 0; begin < line.size();) {
    const auto end = std::min(line.find(' ', begin), line.size());
    if (line.compare(begin, name.size() + 1, name + "=") == 0) return line.substr(begin + name.size() + 1, end - begin - name.size() - 1);
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace

PmiClient::PmiClient(int descriptor, Duration timeout, std::function<bool()> interrupted)
    : descriptor_(descriptor), timeout_(timeout), interrupted_(std::move(interrupted)) {
  uv::prevent_sigpipe(descriptor);
}

void PmiClient::fail(const std::string& what) const {
  throw IoError({Errc::io_error, fmt::format("the process manager of MPI (PMI_FD is {}): {}; set RINGLET_SCHEDULER=off, and RINGLET_RANK, "
                                             "RINGLET_WORLD_SIZE and RINGLET_COORDINATOR yourself",
                                             descriptor_, what)});
}

std::string PmiClient::read_line() {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::nanoseconds(timeout_.nanoseconds);
  for (;;) {
    if (const auto newline = received_.find('\n'); newline != std::string::npos) {
      std::string line = received_.substr(0, newline);
      received_.erase(0, newline + 1);
      return line;
    }
    if (received_.size() > kLongestLine) fail("it answers without an end of the line");
    pollfd waited{descriptor_, POLLIN, 0};
    const int ready = ::poll(&waited, 1, kSliceMilliseconds);
    if (ready < 0 && errno != EINTR) fail(std::strerror(errno));
    if (interrupted_ && interrupted_()) throw Cancelled({Errc::cancelled, "init() was interrupted"});
    if (Clock::now() > end)
      throw Timeout({Errc::timed_out, "the process manager of MPI has not answered in time; have all ranks of the job called init()?"});
    if (ready <= 0) continue;
    char bytes[512];
    const ssize_t count = ::read(descriptor_, bytes, sizeof bytes);
    if (count == 0) fail("it has closed the connection");
    if (count < 0 && errno != EINTR && errno != EAGAIN) fail(std::strerror(errno));
    if (count > 0) received_.append(bytes, static_cast<std::size_t>(count));
  }
}

std::string PmiClient::ask(const std::string& request, const std::string& wanted) {
  const std::string line = request + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::send(descriptor_, line.data() + sent, line.size() - sent, kNoSignal);
    if (count < 0 && errno != EINTR) fail(std::strerror(errno));
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
  std::string answer = read_line();
  if (field(answer, "cmd") != wanted || field(answer, "rc").value_or("0") != "0")
    fail(fmt::format("'{}' was answered by '{}'", request, answer));
  return answer;
}

void PmiClient::finish() noexcept {
  try {
    ask("cmd=finalize", "finalize_ack");
  } catch (const std::exception&) {
    // An MPI of this process has done it before.
  }
}

std::string PmiClient::job() {
  const std::string answer = ask("cmd=get_my_kvsname", "my_kvsname");
  const auto name = field(answer, "kvsname");
  if (!name) fail(fmt::format("it has no name for the job: '{}'", answer));
  return *name;
}

std::string PmiClient::share(const std::string& key, const std::optional<std::string>& given) {
  const std::string space = job();
  if (given) ask(fmt::format("cmd=put kvsname={} key={} value={}", space, key, *given), "put_result");
  ask("cmd=barrier_in", "barrier_out");
  const std::string answer = ask(fmt::format("cmd=get kvsname={} key={}", space, key), "get_result");
  const auto value = field(answer, "value");
  if (!value) fail(fmt::format("'{}' was not handed on: '{}'", key, answer));
  return *value;
}

}  // namespace ringlet::native
