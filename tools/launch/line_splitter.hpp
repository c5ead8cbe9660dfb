#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringlet::launch {

/// Turns a rank's bytes, which come in any pieces, into whole lines with a prefix. Holds at most one line of `kMaxLineBytes`.
///
/// A line ends with "\n", "\r\n" or a lone "\r", and keeps its end: progress bars that redraw themselves with "\r" do so behind the prefix.
/// A longer line is cut into several. With a prefix, a cut and a missing last end become "\n", and a "\r" on an empty line is dropped;
/// without one, the bytes that come out are the bytes that went in.
class LineSplitter {
 public:
  static constexpr std::size_t kMaxLineBytes = 64 * 1024;

  /// An empty prefix leaves the bytes as they are.
  explicit LineSplitter(std::string prefix) : prefix_(std::move(prefix)) {}

  /// Takes bytes and appends the lines that are complete to `out`.
  void feed(std::string_view bytes, std::string& out);
  /// No more bytes will come: appends what is left.
  void finish(std::string& out);

 private:
  void take(std::string_view part, std::string& out);
  void emit(std::string_view end, std::string& out);

  std::string prefix_;
  std::string line_;
  bool held_return_ = false;  // a '\r' whose successor decides what it means
};

}  // namespace ringlet::launch
