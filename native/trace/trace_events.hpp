#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ports/trace.hpp"

namespace ringlet {
struct Identity;
}

namespace ringlet::native {

/// This rank in one of the worlds that it was in.
struct TracedWorld {
  std::uint64_t job = 0;  // WorldOptions::job
  std::uint32_t epoch = 0;
  std::uint64_t lineage = 0;
  int rank = 0, size = 1;
  bool joined = false;      // by this world
  std::vector<int> lost{};  // ranks of the world before
};

/// A number of microseconds with three decimals, as it stands in events.
std::string microseconds(std::int64_t nanoseconds);

/// The events of records, in Chrome's trace event format (docs/trace.md): JSON objects on one line each. `process` is what that format
/// calls pid; times are microseconds of the process' own clock. There are many, so the room for their text is kept.
class EventText {
 public:
  EventText() = default;
  EventText(const EventText&) = delete;
  EventText& operator=(const EventText&) = delete;

  /// Adds that of a record of a track whose records do not overlap.
  void add_span(const TraceRecord& record, int process);
  /// Adds those of one whose records may: two objects with ",\n" between them, of which the first has the arguments. Viewers draw them on a
  /// line of their name, whatever their track, so they have the track's name. `pair`: its number among all such pairs of the process.
  void add_pair(const TraceRecord& record, int process, std::string_view track_name, std::uint64_t pair);
  std::string_view text() const { return {room_.data(), static_cast<std::size_t>(end_ - room_.data())}; }
  void clear() { end_ = room_.data(); }

 private:
  struct Name;
  struct Microseconds;

  /// For what is added of one record.
  void make_room(const TraceRecord& record, std::string_view name);
  void put(std::string_view piece);
  void put(Name name);
  void put(Microseconds time);
  void put(std::integral auto number);
  void add(const auto&... pieces);
  void add_arguments(const TraceRecord& record);

  std::vector<char> room_;
  char* end_ = room_.data();  // of the text in it
};

/// Other events in that format.
///@{
std::string to_trace_event(const ClockReading& reading, int process);
std::string to_trace_event(const TracedWorld& world, Instant at, int process);
std::string name_of_process(int process, std::string_view name);
std::string name_of_track(int process, std::uint32_t track, std::string_view name);
/// What merging needs to know of the file: a text that is the same for processes with the same clock, empty where that is not known, and
/// when the process began to write, by the calendar. Who else wants to write it learns which process does.
std::string header_of_trace(int process, std::string_view clock_name, const Identity& writer, std::int64_t began_ms);
/// `dropped_by_threads`: events for which a thread's buffer had no room; `dropped_by_file`: those beyond the limit of the file.
std::string end_of_trace(int process, std::uint64_t dropped_by_threads, std::uint64_t dropped_by_file);
///@}

}  // namespace ringlet::native
