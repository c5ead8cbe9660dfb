#include "native/trace/trace_events.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/engine/world.hpp"

namespace ringlet::native {

namespace {

std::string json_text(std::string_view text) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (is_plain) return fmt::format(FMT_COMPILE("\"{}\""), text);
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string arguments_of(const TraceRecord& record) {
  std::string text;
  const auto add = [&](std::string_view name, const auto& value) {
    fmt::format_to(std::back_inserter(text), FMT_COMPILE("{}\"{}\":{}"), text.empty() ? "" : ",", name, value);
  };
  if (record.peer >= 0) add("peer", record.peer);
  if (record.bytes > 0) add("bytes", record.bytes);
  add("number", record.number);
  if (!record.dtype.empty()) add("dtype", json_text(record.dtype));
  if (!record.algorithm.empty()) add("algorithm", json_text(record.algorithm));
  if (record.failed) add("failed", "true");
  return text;
}

std::string name_event(std::string_view kind, int process, std::uint32_t track, std::string_view name) {
  return fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})", kind, process, track, json_text(name));
}

}  // namespace

std::string microseconds(std::int64_t nanoseconds) {
  const std::uint64_t length = nanoseconds < 0 ? 0 - static_cast<std::uint64_t>(nanoseconds) : static_cast<std::uint64_t>(nanoseconds);
  return fmt::format(FMT_COMPILE("{}{}.{:03}"), nanoseconds < 0 ? "-" : "", length / 1000, length % 1000);
}

std::string to_trace_event(const TraceRecord& record, int process) {
  return fmt::format(FMT_COMPILE(R"({{"name":{},"cat":"{}","ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"args":{{{}}}}})"),
                     json_text(record.name), record.category, microseconds(record.begin.nanoseconds),
                     microseconds(std::max<std::int64_t>((record.end - record.begin).nanoseconds, 0)), process, record.track,
                     arguments_of(record));
}

std::string to_trace_events(const TraceRecord& record, int process, std::string_view track_name, std::uint64_t pair) {
  const std::string name = json_text(track_name), arguments = arguments_of(record);
  const auto half = [&](char phase, Instant at) {
    return fmt::format(FMT_COMPILE(R"({{"name":{},"cat":"{}","ph":"{}","id2":{{"local":"{}"}},"ts":{},"pid":{},"tid":{},"args":{{{}}}}})"),
                       name, record.category, phase, pair, microseconds(at.nanoseconds), process, record.track, arguments);
  };
  return half('b', record.begin) + ",\n" + half('e', std::max(record.begin, record.end));
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
