#include "native/trace/trace_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "core/base/printable.hpp"
#include "core/base/refuse.hpp"
#include "transport/unique_fd.hpp"

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

UniqueFd take_given_file(const GivenDescriptor& given) {
  UniqueFd own = given.duplicate();
  // A forked process that comes to a group, too, would write into the same file.
  if (own) ::close(given.number);
  return own;
}

std::string writer_of(const std::string& path) {
  std::array<char, 4096> begin{};
  std::ifstream(path).read(begin.data(), begin.size() - 1);
  // The header stands in the second line. Whatever else the file is, no more of it is read.
  std::istringstream lines(begin.data());
  std::string line;
  for (int i = 0; i < 2; ++i) std::getline(lines, line);
  if (line.ends_with(',')) line.pop_back();
  const auto json = nlohmann::json::parse(line, nullptr, false);
  const auto arguments = json.is_object() ? json.find("args") : json.end();
  if (!json.is_object() || arguments == json.end() || !arguments->is_object()) return "another process";
  const auto process = arguments->find("process");
  if (process == arguments->end() || !process->is_number_unsigned()) return "another process";
  const auto text = [&](const char* name) {
    const auto found = arguments->find(name);
    return found != arguments->end() && found->is_string() ? printable(found->get<std::string>()) : std::string("?");
  };
  return fmt::format("process {} ({} on {})", process->get<std::uint64_t>(), text("program"), text("host"));
}

std::string quoted_trace(std::string_view path, std::string_view variable) {
  return variable.empty() ? fmt::format("'{}'", path) : fmt::format("'{}' ({})", path, variable);
}

TraceFile::TraceFile(std::string path, std::string_view variable, std::size_t most_bytes)
    : path_(std::move(path)), most_bytes_(most_bytes) {
  file_ = OutputFile(open_alone(path_));
  if (!file_.is_open() && errno == EWOULDBLOCK)
    throw TraceFileInUse(
        Status(Errc::invalid_argument, fmt::format("{} is being written by {}", quoted_trace(path_, variable), writer_of(path_))));
  if (!file_.is_open())
    refuse(fmt::format("the trace {} cannot be written: {}; name a file in a directory that is there", quoted_trace(path_, variable),
                       std::strerror(errno)));
}

TraceFile::TraceFile(int descriptor, std::string name, std::size_t most_bytes)
    : path_(std::move(name)), most_bytes_(most_bytes), file_(descriptor) {}

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
  const bool written = file_.write(gathered_);
  gathered_.clear();
  return written;
}

bool TraceFile::finish(std::string_view last_event) {
  gathered_ += last_event;
  gathered_ += "\n]\n";
  return flush();
}

bool TraceFile::rename(const std::string& path) {
  if (std::rename(path_.c_str(), path.c_str()) != 0) return false;
  path_ = path;
  return true;
}

}  // namespace ringlet::native
