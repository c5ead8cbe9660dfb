#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet::trace {

/// The lines around the events of a merged trace.
///@{
inline constexpr std::string_view kBeginOfMerged = R"({"displayTimeUnit":"ns","traceEvents":[)", kEndOfMerged = "]}";
///@}

/// Reads a rank's part, or a merged trace, which hold an event in each line. What a process that was killed has left of its last line is
/// passed over; a merged trace has to be whole. All else that is no trace of Ringlet's is refused by a `std::runtime_error`, which names
/// the file and the line, and quotes its beginning.
class TraceReader {
 public:
  static constexpr std::size_t kMaxLineBytes = 1 << 20;
  static constexpr std::size_t kMaxQuotedBytes = 200;

  /// Throws, too, where the file cannot be read.
  explicit TraceReader(std::string path);

  bool is_merged() const { return is_merged_; }
  /// The next line that should hold an event, without the comma behind it, until the next call; nothing at the end.
  std::optional<std::string_view> next();
  /// The event in the line that next() has returned, which find_fault() finds nothing wrong with.
  nlohmann::ordered_json event() const;
  /// Lines that were cut short, so far.
  std::uint64_t cut_lines() const { return cut_lines_; }

 private:
  bool read_line();
  void read_beginning();
  [[noreturn]] void refuse(std::string_view what) const;

  const std::string path_;
  std::ifstream file_;
  std::vector<char> buffer_;
  std::string_view line_;
  bool has_line_end_ = false;
  std::uint64_t line_number_ = 0, cut_lines_ = 0;
  bool is_merged_ = false, is_ended_ = false;
};

/// What an event has that Ringlet does not write, as a part of a sentence: a field that lacks or is of another type, a negative duration, a
/// number that is too large. Nothing where all is in order.
std::optional<std::string> find_fault(const nlohmann::ordered_json& event);

}  // namespace ringlet::trace
