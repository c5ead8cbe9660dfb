#include "tools/trace/trace_reader.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "core/base/printable.hpp"

namespace ringlet::trace {

TraceReader::TraceReader(std::string path) : path_(std::move(path)), file_(path_), buffer_(kMaxLineBytes + 1) {
  if (!file_) throw std::runtime_error(fmt::format("'{}' cannot be read: {}", path_, std::strerror(errno)));
  read_beginning();
}

/// A process that was killed at once has left nothing, or a part of the first line.
void TraceReader::read_beginning() {
  if (!read_line()) return;
  is_merged_ = line_ == kBeginOfMerged;
  if (!is_merged_ && line_ != "[") refuse("a trace of Ringlet's begins in another way");
}

bool TraceReader::read_line() {
  file_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  if (file_.bad()) throw std::runtime_error(fmt::format("'{}' cannot be read: {}", path_, std::strerror(errno)));
  line_ = std::string_view(buffer_.data(), static_cast<std::size_t>(file_.gcount()));
  has_line_end_ = !file_.eof();
  if (line_.empty()) return false;
  ++line_number_;
  if (file_.fail() && has_line_end_) refuse(fmt::format("the line has more than {} bytes", kMaxLineBytes));
  if (has_line_end_) line_.remove_suffix(1);
  return true;
}

std::optional<std::string_view> TraceReader::next() {
  while (read_line()) {
    if (is_ended_) refuse("it stands behind the end of the merged trace");
    is_ended_ = is_merged_ && line_ == kEndOfMerged;
    // A rank may be several processes in a row, each of which has begun a list.
    if (is_ended_ || line_.empty() || (!is_merged_ && (line_ == "[" || line_ == "]"))) continue;
    if (!is_merged_ && (!has_line_end_ || line_.ends_with('['))) {
      ++cut_lines_;
      continue;
    }
    if (line_.ends_with(',')) line_.remove_suffix(1);
    return line_;
  }
  if (is_merged_ && !is_ended_) throw std::runtime_error(fmt::format("'{}' is cut short: it lacks the end of a merged trace", path_));
  return std::nullopt;
}

nlohmann::ordered_json TraceReader::event() const {
  auto event = nlohmann::ordered_json::parse(line_, nullptr, false);
  if (event.is_discarded()) refuse("it is no JSON");
  if (const auto fault = find_fault(event)) refuse(*fault);
  return event;
}

void TraceReader::refuse(std::string_view what) const {
  const std::string_view quoted = cut_text(line_, kMaxQuotedBytes);
  throw std::runtime_error(fmt::format("'{}' is no trace of Ringlet's; line {}: {}: '{}'{}", path_, line_number_, what, printable(quoted),
                                       quoted.size() < line_.size() ? "..." : ""));
}

}  // namespace ringlet::trace
