#include "native/checkpoint/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ringlet/error.hpp>
#include <system_error>
#include <utility>

#include "native/write_all.hpp"

namespace ringlet::native {

namespace {

[[noreturn]] void throw_errno(const std::filesystem::path& path, std::string_view what) {
  throw_io_error(path, fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

int open_descriptor(const std::filesystem::path& path, int flags, std::string_view what) {
  int descriptor = -1;
  do descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) throw_errno(path, what);
  return descriptor;
}

}  // namespace

void throw_io_error(const std::filesystem::path& path, const std::string& what) {
  throw IoError({Errc::io_error, fmt::format("{}: {}", path.string(), what)});
}

File File::create(const std::filesystem::path& path) {
  return {open_descriptor(path, O_WRONLY | O_CREAT | O_EXCL, "cannot be created"), path};
}

File File::open(const std::filesystem::path& path) {
  // Opening a FIFO would wait for a writer otherwise.
  File file{open_descriptor(path, O_RDONLY | O_NONBLOCK, "cannot be opened"), path};
  struct stat facts{};
  if (::fstat(file.descriptor_, &facts) != 0) throw_errno(path, "cannot be examined");
  if (!S_ISREG(facts.st_mode)) throw_io_error(path, "is not a regular file");
  return file;
}

File::File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::uint64_t File::size() const {
  struct stat facts{};
  if (::fstat(descriptor_, &facts) != 0) throw_errno(path_, "its size cannot be read");
  return static_cast<std::uint64_t>(facts.st_size);
}

void File::write(std::span<const std::byte> bytes) {
  errno = write_all(descriptor_, bytes);
  if (errno != 0) throw_errno(path_, "cannot be written");
}

void File::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const auto got = ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(path_, "cannot be read");
    if (got == 0) throw_io_error(path_, fmt::format("ends at byte {}, where more was expected", offset));
    offset += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

void File::finish() {
  if (::fsync(descriptor_) != 0) throw_errno(path_, "cannot be written through to the disk");
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_errno(path_, "cannot be written");
}

void sync_directory(const std::filesystem::path& path) {
  const int descriptor = open_descriptor(path.empty() ? "." : path, O_RDONLY | O_DIRECTORY, "cannot be opened");
  // Some network file systems cannot sync a directory and do not need it.
  const bool synced = ::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP;
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  if (!synced) throw_errno(path, "cannot be written through to the disk");
}

void make_directories(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status found = std::filesystem::status(path, error);
  if (path.empty() || std::filesystem::is_directory(found)) return;
  if (std::filesystem::exists(found)) throw_io_error(path, "is not a directory");
  make_directories(path.parent_path());
  std::filesystem::create_directory(path, error);
  if (error) throw_io_error(path, fmt::format("cannot be created: {}", error.message()));
  sync_directory(path.parent_path());
}

void rename_path(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_errno(from, fmt::format("cannot be renamed to {}", to.filename().string()));
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  File file = File::create(path);
  file.write(std::as_bytes(std::span(text)));
  file.finish();
}

std::string read_file(const std::filesystem::path& path, std::uint64_t limit) {
  const File file = File::open(path);
  const std::uint64_t size = file.size();
  if (size > limit) throw_io_error(path, fmt::format("is {} bytes long; at most {} are possible", size, limit));
  std::string text(size, '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace ringlet::native
