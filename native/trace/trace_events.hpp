#pragma once

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

/// Events of Chrome's trace event format (docs/trace.md), each a JSON object on one line. `process` is what that format calls pid. Times
/// are microseconds of the process' own clock.
///@{
/// Of a record of a track whose records do not overlap.
std::string to_trace_event(const TraceRecord& record, int process);
/// Of one whose records may: two objects with ",\n" between them. Viewers draw them on a line of their name, whatever their track, so they
/// have the track's name. `pair`: its number among all such pairs of the process.
std::string to_trace_events(const TraceRecord& record, int process, std::string_view track_name, std::uint64_t pair);
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
