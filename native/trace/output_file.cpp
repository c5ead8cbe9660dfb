#include "native/trace/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "native/write_all.hpp"

namespace ringlet::native {

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
