#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/trace/clock_map.hpp"

namespace ringlet::trace {

/// Whether the file begins as merged ones do.
bool is_merged(const std::string& file);

/// The files of ranks beside FILE, as RINGLET_TRACE=FILE names them, by name. Throws `std::runtime_error` where the folder cannot be read.
std::vector<std::string> find_parts(const std::string& file);

/// Whether take_clock() may find something in the line.
bool may_tell_of_clock(std::string_view line);

/// The text, or the whole number, of this name; empty, or 0, where there is none, or it is of another kind.
///@{
std::string text_in(const nlohmann::ordered_json& object, const char* name);
std::int64_t number_in(const nlohmann::ordered_json& object, const char* name);
///@}

// What follows takes events of TraceReader::event().

/// The time of this name, which is there, in nanoseconds.
std::int64_t time_in(const nlohmann::ordered_json& event, const char* name);
/// Whether the event says something of its file, under this name.
bool is_metadata(const nlohmann::ordered_json& event, std::string_view name);
/// How many events the file lacks that ends with this one; 0 for all others.
std::uint64_t dropped_in(const nlohmann::ordered_json& event);

/// Takes what an event says of its process' clock.
void take_clock(const nlohmann::ordered_json& event, PartClock& clock);

}  // namespace ringlet::trace
