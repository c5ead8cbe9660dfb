#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ringlet::trace {

/// The parts of an event's text that merging changes or asks for, found without making anything of the rest.
struct EventLine {
  std::string_view name;  // as it is written, without its quotes
  std::string_view pid;
  std::string_view ts;
  std::int64_t process = 0;  // what `pid` says
  std::int64_t at_ns = 0;    // what `ts` says

  /// Reads a line as Ringlet writes nearly all of them: a JSON object without white space, letters beyond ASCII, numbered letters or huge
  /// numbers, which is a span, or the beginning or end of one, that find_fault() finds nothing wrong with. Nothing of others, whether or
  /// not they are events.
  static std::optional<EventLine> find(std::string_view line);
};

/// The nanoseconds of a plain number of microseconds with at most three decimals; nothing for others.
std::optional<std::int64_t> nanoseconds_in(std::string_view microseconds);

}  // namespace ringlet::trace
