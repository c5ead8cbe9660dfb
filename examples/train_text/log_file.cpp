#include "log_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "input_error.hpp"
#include "print.hpp"

namespace train_text {
namespace {

std::uintmax_t size_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

}  // namespace

void LogFile::open(const std::filesystem::path& path, const char* option, bool appends) {
  if (const int error = try_open(path, option, appends); error != 0)
    throw InputError(
        fmt::format("cannot write {}: {}; choose another file for {}", path.string(), std::generic_category().message(error), option));
}

void LogFile::open_late(const std::filesystem::path& path, const char* option, bool appends) {
  if (has_failed_) return;
  if (const int error = try_open(path, option, appends); error != 0) give_up(error);
}

int LogFile::try_open(const std::filesystem::path& path, const char* option, bool appends) {
  name_ = fmt::format("{} ({})", path.string(), option);
  path_ = path;
  std::error_code error;
  // Not by "w": what another process has appended by then would be overwritten.
  if (!appends && std::filesystem::is_regular_file(path, error)) {
    std::filesystem::resize_file(path, 0, error);
    if (error) return error.value();
  }
  file_.reset(std::fopen(path.c_str(), "a"));
  if (!file_) return errno;
  end_ = size_of(path);
  return 0;
}

void LogFile::write(std::string_view line) {
  if (!file_) return;
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0) return give_up(errno);
  if (const long end = std::ftell(file_.get()); end > 0) end_ = static_cast<std::uintmax_t>(end);
}

bool LogFile::has_grown() const { return size_of(path_) > end_; }

void LogFile::close() {
  // Some file systems say only now that the disk was full.
  if (file_ && std::fclose(file_.release()) != 0) give_up(errno);
}

void LogFile::give_up(int error) {
  has_failed_ = true;
  file_.reset();
  print(stderr, "train_text: cannot write to {}: {}; training goes on, and this log ends here\n", name_,
        std::generic_category().message(error));
}

std::filesystem::path own_file(const std::filesystem::path& log, int rank, int epoch, Arrival arrival) {
  const char* given = std::getenv("RINGLET_RANK");
  // Another launcher than the others' may have given a rank that comes later the number of one of these.
  if (given != nullptr && arrival != Arrival::later) return log.string() + "." + given;
  return log.string() + "." + (arrival == Arrival::first ? std::to_string(rank) : fmt::format("{}.{}", rank, epoch));
}

}  // namespace train_text
