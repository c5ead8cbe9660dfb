#include "tools/launch/line_splitter.hpp"

namespace ringlet::launch {

void LineSplitter::feed(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    if (held_return_) {
      held_return_ = false;
      const bool newline = bytes.front() == '\n';
      emit(newline ? "\r\n" : "\r", out);
      if (newline) bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = bytes.find_first_of("\r\n");
    take(bytes.substr(0, end), out);
    if (end == std::string_view::npos) return;
    if (bytes[end] == '\n')
      emit("\n", out);
    else
      held_return_ = true;
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::finish(std::string& out) {
  if (!line_.empty() || (held_return_ && prefix_.empty())) emit(prefix_.empty() ? (held_return_ ? "\r" : "") : "\n", out);
  held_return_ = false;
}

void LineSplitter::take(std::string_view part, std::string& out) {
  while (part.size() > kMaxLineBytes - line_.size()) {
    const std::size_t room = kMaxLineBytes - line_.size();
    line_.append(part.substr(0, room));
    part.remove_prefix(room);
    emit(prefix_.empty() ? "" : "\n", out);
  }
  line_.append(part);
}

void LineSplitter::emit(std::string_view end, std::string& out) {
  if (!prefix_.empty() && line_.empty() && end == "\r") return;
  out.append(prefix_).append(line_).append(end);
  line_.clear();
}

}  // namespace ringlet::launch
