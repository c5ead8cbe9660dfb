#include "tools/trace/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "native/trace/trace_events.hpp"
#include "tools/trace/event_line.hpp"
#include "tools/trace/trace_part.hpp"
#include "tools/trace/trace_reader.hpp"

namespace ringlet::trace {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kFirstExtraProcess = 1'000'000;

/// Gives each part a process number of its own.
std::int64_t process_for(std::int64_t wanted, std::set<std::int64_t>& taken) {
  std::int64_t process = wanted;
  for (std::int64_t next = kFirstExtraProcess; !taken.insert(process).second; ++next) process = next;
  return process;
}

/// Tells a watch how far the reading is. All parts are read twice.
class ReadBytes {
 public:
  static constexpr std::uint64_t kBetween = 1 << 20;

  ReadBytes(const std::vector<std::string>& parts, const MergeWatch& watch) : watch_(watch) {
    std::error_code unknown;
    for (const std::string& part : parts)
      if (const auto bytes = std::filesystem::file_size(part, unknown); !unknown) all_ += bytes;
  }
  void add(std::string_view line) {
    twice_ += line.size() + 1;
    if (!watch_ || twice_ < next_) return;
    next_ = twice_ + kBetween;
    if (!watch_(std::min(twice_ / 2, all_), all_)) throw MergeStopped("a signal ended it");
  }

 private:
  const MergeWatch& watch_;
  std::uint64_t all_ = 0, twice_ = 0, next_ = kBetween;
};

/// Writes events around which stands what makes them one file.
class MergedEvents {
 public:
  explicit MergedEvents(UnfinishedFile& out) : out_(out), text_(kBeginOfMerged) { text_ += '\n'; }

  /// The text to which the next event is appended.
  std::string& begin_event() {
    if (text_.size() > kWrittenBytes) write();
    if (events_++ > 0) text_ += ",\n";
    return text_;
  }
  std::uint64_t events() const { return events_; }
  void finish() {
    if (events_ > 0) text_ += '\n';
    text_.append(kEndOfMerged) += '\n';
    write();
    out_.finish();
  }

 private:
  static constexpr std::size_t kWrittenBytes = 1 << 20;

  void write() {
    out_.write(text_);
    text_.clear();
  }

  UnfinishedFile& out_;
  std::string text_;
  std::uint64_t events_ = 0;
};

/// Brings one part's events into the merged file.
class PartMerger {
 public:
  PartMerger(const std::optional<ClockMap>& map, std::set<std::int64_t>& processes, MergedEvents& events)
      : map_(map), processes_(processes), events_(events) {}

  /// Takes the line that the reader has returned.
  void add(std::string_view line, const TraceReader& reader) {
    if (const auto plain = EventLine::find(line))
      add_plain(line, *plain);
    else
      add(reader.event());
  }
  std::uint64_t dropped() const { return dropped_; }
  /// Whether the last process whose events these are has written their end.
  bool has_end() const { return has_end_; }

 private:
  void add(Json event) {
    event["pid"] = process_of(number_in(event, "pid"));
    if (map_ && event.contains("ts")) event["ts"] = static_cast<double>(map_->to_common(time_in(event, "ts"))) / 1000;
    dropped_ += dropped_in(event);
    if (is_metadata(event, "ringlet_trace")) {
      has_end_ = false;
      event["args"]["aligned"] = map_.has_value();
      if (map_) event["args"]["clock_error_ns"] = map_->error_ns();
    }
    if (is_metadata(event, "ringlet_trace_end")) has_end_ = true;
    events_.begin_event() += event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  /// The same for lines of which only numbers change, which are nearly all.
  void add_plain(std::string_view line, const EventLine& event) {
    std::string& text = events_.begin_event();
    const char* rest = line.data();
    const auto replace = [&](std::string_view number, const std::string& by) {
      text.append(rest, number.data()) += by;
      rest = number.data() + number.size();
    };
    const std::string process = fmt::format("{}", process_of(event.process));
    const bool begins_with_time = event.ts.data() < event.pid.data();
    if (!begins_with_time) replace(event.pid, process);
    if (map_) replace(event.ts, native::microseconds(map_->to_common(event.at_ns)));
    if (begins_with_time) replace(event.pid, process);
    text.append(rest, line.data() + line.size());
  }
  std::int64_t process_of(std::int64_t wanted) {
    if (!std::exchange(has_process_, true)) process_ = process_for(wanted, processes_);
    return process_;
  }

  const std::optional<ClockMap>& map_;
  std::set<std::int64_t>& processes_;
  MergedEvents& events_;
  std::int64_t process_ = 0;  // all events are of the first one's
  std::uint64_t dropped_ = 0;
  bool has_process_ = false, has_end_ = false;
};

}  // namespace

Merged merge_traces(const std::vector<std::string>& parts, UnfinishedFile& out, const MergeWatch& watch) {
  ReadBytes read(parts, watch);
  std::vector<PartClock> clocks(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    TraceReader reader(parts[i]);
    if (reader.is_merged()) throw std::runtime_error(fmt::format("'{}' is a merged trace, and not one rank's part", parts[i]));
    while (const auto line = reader.next()) {
      read.add(*line);
      if (may_tell_of_clock(*line)) take_clock(reader.event(), clocks[i]);
    }
  }
  const auto maps = map_clocks(clocks);

  Merged merged;
  MergedEvents events(out);
  std::set<std::int64_t> processes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    PartMerger merger(maps[i], processes, events);
    TraceReader reader(parts[i]);
    while (const auto line = reader.next()) {
      read.add(*line);
      merger.add(*line, reader);
    }
    merged.unreadable += reader.cut_lines();
    merged.dropped += merger.dropped();
    if (!maps[i]) merged.unaligned.push_back(i);
    if (!merger.has_end()) merged.endless.push_back(i);
  }
  merged.events = events.events();
  events.finish();
  return merged;
}

Merged merge_traces(const std::vector<std::string>& parts, const std::string& out, const MergeWatch& watch) {
  UnfinishedFile file(out);
  return merge_traces(parts, file, watch);
}

}  // namespace ringlet::trace
