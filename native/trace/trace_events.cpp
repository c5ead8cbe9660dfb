#include "native/trace/trace_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <concepts>
#include <nlohmann/json.hpp>

#include "core/engine/world.hpp"

namespace ringlet::native {

namespace {

std::string json_text(std::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string name_event(std::string_view kind, int process, std::uint32_t track, std::string_view name) {
  return fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})", kind, process, track, json_text(name));
}

/// Whether a name stands as it is in JSON.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

/// Into room that is there; returns its end.
char* write_microseconds(char* to, char* end, std::int64_t nanoseconds) {
  std::uint64_t length = static_cast<std::uint64_t>(nanoseconds);
  if (nanoseconds < 0) {
    *to++ = '-';
    length = 0 - length;
  }
  to = std::to_chars(to, end, length / 1000).ptr;
  *to++ = '.';
  for (const std::uint64_t unit : {100U, 10U, 1U}) *to++ = static_cast<char>('0' + length / unit % 10);
  return to;
}

}  // namespace

std::string microseconds(std::int64_t nanoseconds) {
  std::array<char, 32> text;
  return {text.data(), write_microseconds(text.data(), text.data() + text.size(), nanoseconds)};
}

struct EventText::Name {
  std::string_view text;
};

struct EventText::Microseconds {
  std::int64_t nanoseconds;
};

void EventText::make_room(const TraceRecord& record, std::string_view name) {
  constexpr std::size_t kMostBesideTexts = 512, kMostOfCharacter = 6;  // as \u001f
  const std::size_t most = 2 * kMostBesideTexts + kMostOfCharacter * (2 * name.size() + record.dtype.size() + record.algorithm.size()) +
                           2 * record.category.size();
  const std::size_t used = text().size();
  if (room_.size() - used < most) room_.resize(2 * (used + most));
  end_ = room_.data() + used;
}

void EventText::put(std::string_view piece) {
  assert(text().size() + piece.size() <= room_.size());
  end_ = std::copy(piece.begin(), piece.end(), end_);
}

void EventText::put(Name name) {
  if (is_plain(name.text))
    add("\"", name.text, "\"");
  else
    put(json_text(name.text));
}

void EventText::put(Microseconds time) { end_ = write_microseconds(end_, room_.data() + room_.size(), time.nanoseconds); }

void EventText::put(std::integral auto number) { end_ = std::to_chars(end_, room_.data() + room_.size(), number).ptr; }

void EventText::add(const auto&... pieces) { (put(pieces), ...); }

void EventText::add_arguments(const TraceRecord& record) {
  add(",\"args\":{\"number\":", record.number);
  if (record.peer >= 0) add(",\"peer\":", record.peer);
  if (record.bytes > 0) add(",\"bytes\":", record.bytes);
  if (!record.dtype.empty()) add(",\"dtype\":", Name{record.dtype});
  if (!record.algorithm.empty()) add(",\"algorithm\":", Name{record.algorithm});
  if (record.failed) add(",\"failed\":true");
  add("}}");
}

void EventText::add_span(const TraceRecord& record, int process) {
  make_room(record, record.name);
  const std::int64_t duration = std::max<std::int64_t>((record.end - record.begin).nanoseconds, 0);
  add("{\"name\":", Name{record.name}, ",\"cat\":\"", record.category, "\",\"ph\":\"X\",\"ts\":", Microseconds{record.begin.nanoseconds},
      ",\"dur\":", Microseconds{duration}, ",\"pid\":", process, ",\"tid\":", record.track);
  add_arguments(record);
}

void EventText::add_pair(const TraceRecord& record, int process, std::string_view track_name, std::uint64_t pair) {
  make_room(record, track_name);
  const auto add_half = [&](std::string_view phase, Instant at) {
    add("{\"name\":", Name{track_name}, ",\"cat\":\"", record.category, "\",\"ph\":\"", phase, "\",\"id2\":{\"local\":\"", pair,
        "\"},\"ts\":", Microseconds{at.nanoseconds}, ",\"pid\":", process, ",\"tid\":", record.track);
  };
  add_half("b", record.begin);
  add_arguments(record);
  add(",\n");
  add_half("e", std::max(record.begin, record.end));
  add("}");
}

std::string to_trace_event(const ClockReading& reading, int process) {
  return fmt::format(R"({{"name":"clock","ph":"i","s":"p","ts":{},"pid":{},"tid":0,"args":{{"epoch":{},"offset_ns":{},"error_ns":{}}}}})",
                     microseconds(reading.at.nanoseconds), process, reading.epoch, reading.offset.nanoseconds, reading.error.nanoseconds);
}

std::string to_trace_event(const TracedWorld& world, Instant at, int process) {
  std::string name = fmt::format("world of {}, epoch {}", world.size, world.epoch);
  if (!world.lost.empty()) name += fmt::format(": rank {} of the one before lost", fmt::join(world.lost, ", "));
  if (world.joined) name += ": joined";
  return fmt::format(
      R"({{"name":{},"ph":"i","s":"p","ts":{},"pid":{},"tid":0,"args":{{"job":"{:016x}","epoch":{},"lineage":"{:016x}","rank":{},"size":{},"lost":[{}]}}}})",
      json_text(name), microseconds(at.nanoseconds), process, world.job, world.epoch, world.lineage, world.rank, world.size,
      fmt::join(world.lost, ","));
}

std::string name_of_process(int process, std::string_view name) { return name_event("process_name", process, 0, name); }
std::string name_of_track(int process, std::uint32_t track, std::string_view name) {
  return name_event("thread_name", process, track, name);
}

std::string header_of_trace(int process, std::string_view clock_name, const Identity& writer, std::int64_t began_ms) {
  return fmt::format(
      R"({{"name":"ringlet_trace","ph":"M","pid":{},"tid":0,"args":{{"version":1,"clock":{},"began_ms":{},"process":{},"program":{},"host":{}}}}})",
      process, json_text(clock_name), began_ms, writer.pid, json_text(writer.program), json_text(writer.host));
}

std::string end_of_trace(int process, std::uint64_t dropped_by_threads, std::uint64_t dropped_by_file) {
  return fmt::format(R"({{"name":"ringlet_trace_end","ph":"M","pid":{},"tid":0,"args":{{"dropped_by_threads":{},"dropped_by_file":{}}}}})",
                     process, dropped_by_threads, dropped_by_file);
}

}  // namespace ringlet::native
