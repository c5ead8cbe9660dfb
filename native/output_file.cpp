#include "native/output_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "native/write_all.hpp"

namespace ringlet::native {

std::optional<std::string> find_obstacle(const std::string& file) {
  std::error_code failure;
  const auto named = std::filesystem::symlink_status(file, failure), there = std::filesystem::status(file, failure);
  if (std::filesystem::is_directory(there)) return "it is a directory";
  if (std::filesystem::is_symlink(named) && !std::filesystem::exists(there)) return "it is a symbolic link to nothing";
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) return "it is a device, a pipe or a socket, and no file";
  return std::nullopt;
}

std::string behind_links(const std::string& file) {
  std::error_code failure;
  if (!std::filesystem::is_symlink(file, failure)) return file;
  const std::filesystem::path target = std::filesystem::canonical(file, failure);
  return failure ? file : target.string();
}

int open_alone(const std::string& path) {
  constexpr int kTries = 100;
  for (int tries = 0; tries < kTries; ++tries) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    struct stat opened{}, named{};
    // Devices and pipes have no content to be destroyed.
    if (file < 0 || ::fstat(file, &opened) != 0 || !S_ISREG(opened.st_mode)) return file;
    const bool is_taken = ::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    // The process that had the file may have renamed it before it let go.
    const bool is_there = ::stat(path.c_str(), &named) == 0 && named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
    if (!is_taken && is_there && ::ftruncate(file, 0) == 0) return file;
    const int error = is_taken ? EWOULDBLOCK : errno;
    ::close(file);
    errno = error;
    if (is_taken || is_there) return -1;
  }
  errno = EBUSY;
  return -1;
}

OutputFile::~OutputFile() {
  if (is_open()) ::close(descriptor_);
}

OutputFile::OutputFile(OutputFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), error_(std::move(other.error_)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(error_, other.error_);
  return *this;
}

bool OutputFile::write(std::string_view bytes) {
  if (!error_.empty()) return false;
  if (const int error = write_all(descriptor_, std::as_bytes(std::span(bytes))); error != 0) error_ = std::strerror(error);
  return error_.empty();
}

bool OutputFile::settle() {
  const int copy = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 3);
  if ((copy < 0 || ::close(copy) != 0) && error_.empty()) error_ = std::strerror(errno);
  return error_.empty();
}

bool OutputFile::close() {
  if (is_open() && ::close(std::exchange(descriptor_, -1)) != 0 && error_.empty()) error_ = std::strerror(errno);
  return error_.empty();
}

}  // namespace ringlet::native
