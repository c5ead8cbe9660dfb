#include "native/trace/trace_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/refuse.hpp"

namespace ringlet::native {

std::string name_of_trace_part(const std::string& file, std::string_view part) {
  const std::string infix = fmt::format(".{}", part);
  const auto name = file.rfind('/') == std::string::npos ? 0 : file.rfind('/') + 1;
  const auto dot = file.rfind('.');
  // A name such as ".trace" has no extension.
  if (dot == std::string::npos || dot <= name) return file + infix;
  return file.substr(0, dot) + infix + file.substr(dot);
}

std::string part_of_rank(int rank, std::uint32_t joined_in_epoch) {
  return joined_in_epoch == 0 ? fmt::format("{}", rank) : fmt::format("{}.epoch{}", rank, joined_in_epoch);
}

std::optional<std::string> describe_given_file(int descriptor) {
  struct stat found{};
  if (::fstat(descriptor, &found) != 0) return std::nullopt;
  return fmt::format("{}:{}:{}", descriptor, static_cast<std::uint64_t>(found.st_dev), static_cast<std::uint64_t>(found.st_ino));
}

std::optional<int> take_given_file(const GivenTraceFile& given) {
  struct stat found{};
  if (::fstat(given.descriptor, &found) != 0 || static_cast<std::uint64_t>(found.st_dev) != given.device ||
      static_cast<std::uint64_t>(found.st_ino) != given.inode)
    return std::nullopt;
  const int own = ::fcntl(given.descriptor, F_DUPFD_CLOEXEC, 3);
  if (own < 0) return std::nullopt;
  // A forked process that comes to a group, too, would write into the same file.
  ::close(given.descriptor);
  return own;
}

TraceFile::TraceFile(std::string path, std::string_view set_by, std::size_t most_bytes) : path_(std::move(path)), most_bytes_(most_bytes) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0)
    refuse(fmt::format("the trace '{}' ({}) cannot be written: {}; name a file in a directory that is there", path_, set_by,
                       std::strerror(errno)));
  gathered_ = "[\n";
}

TraceFile::TraceFile(int descriptor, std::string name, std::size_t most_bytes)
    : path_(std::move(name)), most_bytes_(most_bytes), descriptor_(descriptor), gathered_("[\n") {}

TraceFile::~TraceFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void TraceFile::add(std::string_view event) {
  if (bytes_ + event.size() > most_bytes_) {
    ++dropped_;
    return;
  }
  bytes_ += event.size() + 2;
  gathered_ += event;
  gathered_ += ",\n";
}

bool TraceFile::flush() {
  std::string_view left = gathered_;
  while (error_.empty() && !left.empty()) {
    const ssize_t written = ::write(descriptor_, left.data(), left.size());
    if (written > 0)
      left.remove_prefix(static_cast<std::size_t>(written));
    else if (written == 0 || errno != EINTR)
      error_ = written == 0 ? "nothing was written" : std::strerror(errno);
  }
  gathered_.clear();
  return error_.empty();
}

bool TraceFile::finish(std::string_view last_event) {
  gathered_ += last_event;
  gathered_ += "\n]\n";
  const bool written = flush();
  if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0 && error_.empty()) error_ = std::strerror(errno);
  return written && error_.empty();
}

}  // namespace ringlet::native
