#include "log_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "input_error.hpp"

namespace train_text {

void LogFile::open(const std::filesystem::path& path, const char* option, bool appends) {
  name_ = fmt::format("{} ({})", path.string(), option);
  file_.reset(std::fopen(path.c_str(), appends ? "a" : "w"));
  if (!file_)
    throw InputError(
        fmt::format("cannot write {}: {}; choose another file for {}", path.string(), std::generic_category().message(errno), option));
}

void LogFile::open_late(const std::filesystem::path& path, const char* option, bool appends) {
  if (has_failed_) return;
  try {
    open(path, option, appends);
  } catch (const InputError&) {
    give_up(errno);
  }
}

void LogFile::write(std::string_view line) {
  if (!file_) return;
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0) give_up(errno);
}

void LogFile::close() {
  // Some file systems say only now that the disk was full.
  if (file_ && std::fclose(file_.release()) != 0) give_up(errno);
}

void LogFile::give_up(int error) {
  has_failed_ = true;
  file_.reset();
  fmt::print(stderr, "train_text: cannot write to {}: {}; training goes on, and this log ends here\n", name_,
             std::generic_category().message(error));
}

}  // namespace train_text
