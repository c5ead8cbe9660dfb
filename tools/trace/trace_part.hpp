#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/trace/clock_map.hpp"

namespace ringlet::trace {

/// The lines around the events of a merged trace.
///@{
inline constexpr std::string_view kBeginOfMerged = R"({"displayTimeUnit":"ns","traceEvents":[)", kEndOfMerged = "]}";
///@}

/// Whether the file begins as merged ones do.
bool is_merged(const std::string& file);

/// The files of ranks beside FILE, as RINGLET_TRACE=FILE names them, by name. Throws `std::runtime_error` where the folder cannot be read.
std::vector<std::string> find_parts(const std::string& file);

/// Calls `take` for each line of a rank's file, or of a merged one, that should hold an event, without the comma behind it, until it
/// returns false. Throws `std::runtime_error` where the file cannot be read.
void read_lines(const std::string& path, const std::function<bool(std::string_view line)>& take);

/// Calls `take` for each event of a rank's file, or of a merged one, in their order; the file may lack its end. Returns how many lines
/// could not be read: of a rank that was killed the last one. Lines that `is_wanted` refuses are passed over, which saves most of the time.
/// Throws `std::runtime_error` where the file cannot be read.
std::uint64_t read_events(const std::string& path, const std::function<void(nlohmann::ordered_json& event)>& take,
                          bool (*is_wanted)(std::string_view line) = nullptr);
/// The same up to the event for which `take` returns true.
void read_events_until(const std::string& path, const std::function<bool(const nlohmann::ordered_json& event)>& take,
                       bool (*is_wanted)(std::string_view line));
/// Whether take_clock() may find something in the line.
bool may_tell_of_clock(std::string_view line);

/// The text, or the whole number, of this name; empty, or 0, where there is none, or it is of another kind.
///@{
std::string text_in(const nlohmann::ordered_json& object, const char* name);
std::int64_t number_in(const nlohmann::ordered_json& object, const char* name);
///@}

/// How many events the file lacks that ends with this one; 0 for all others.
std::uint64_t dropped_in(const nlohmann::ordered_json& event);

/// Takes what an event says of its process' clock.
void take_clock(const nlohmann::ordered_json& event, PartClock& clock);

}  // namespace ringlet::trace
