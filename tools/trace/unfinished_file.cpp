#include "tools/trace/unfinished_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace ringlet::trace {

std::string name_while_unfinished(const std::string& out) { return out + ".unfinished"; }

UnfinishedFile::UnfinishedFile(const std::string& out) : out_(native::behind_links(out)) {
  if (const auto obstacle = native::find_obstacle(out)) refuse(*obstacle);
  file_ = native::OutputFile(native::open_alone(name_while_unfinished(out_)));
  if (!file_.is_open()) refuse(errno == EWOULDBLOCK ? "another process is making a trace of that name" : std::strerror(errno));
}

UnfinishedFile::~UnfinishedFile() {
  std::error_code failure;
  // Before the file is closed, since then it may be another process'.
  if (!is_whole_ && file_.is_open()) std::filesystem::remove(name_while_unfinished(out_), failure);
}

void UnfinishedFile::write(std::string_view bytes) {
  if (!file_.write(bytes)) refuse(file_.error());
}

void UnfinishedFile::finish() {
  if (!file_.settle()) refuse(file_.error());
  std::error_code failure;
  std::filesystem::rename(name_while_unfinished(out_), out_, failure);
  if (failure) refuse(failure.message());
  is_whole_ = true;
}

void UnfinishedFile::refuse(const std::string& why) const {
  throw std::runtime_error(fmt::format("'{}' cannot be written: {}", out_, why));
}

}  // namespace ringlet::trace
