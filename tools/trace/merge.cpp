#include "tools/trace/merge.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "native/trace/trace_file.hpp"
#include "tools/trace/event_line.hpp"
#include "tools/trace/trace_part.hpp"

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

void add_clock(Json& event, const std::optional<ClockMap>& map) {
  const auto arguments = event.find("args");
  if (text_in(event, "name") != "ringlet_trace" || arguments == event.end() || !arguments->is_object()) return;
  (*arguments)["aligned"] = map.has_value();
  if (map) (*arguments)["clock_error_ns"] = map->error_ns();
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

/// The merged file while it is written; it is removed unless it becomes whole.
class MergedFile {
 public:
  explicit MergedFile(const std::string& out) : out_(out), unfinished_(name_while_unfinished(out)), lock_(native::open_alone(unfinished_)) {
    if (lock_ < 0 && errno == EWOULDBLOCK) throw std::runtime_error(fmt::format("another process is writing '{}'", unfinished_));
    if (lock_ >= 0) file_.open(unfinished_);
    check();
    text_.append(kBeginOfMerged) += '\n';
  }
  ~MergedFile() {
    file_.close();
    std::error_code failure;
    if (!is_whole_) std::filesystem::remove(unfinished_, failure);
    ::close(lock_);
  }
  MergedFile(const MergedFile&) = delete;
  MergedFile& operator=(const MergedFile&) = delete;

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
    file_.close();
    check();
    std::filesystem::rename(unfinished_, out_);
    is_whole_ = true;
  }

 private:
  static constexpr std::size_t kWrittenBytes = 1 << 20;

  void write() {
    file_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
    check();
  }
  void check() const {
    if (lock_ < 0 || !file_) throw std::runtime_error(fmt::format("'{}' cannot be written: {}", unfinished_, std::strerror(errno)));
  }

  const std::string out_, unfinished_;
  const int lock_;
  std::ofstream file_;
  std::string text_;
  std::uint64_t events_ = 0;
  bool is_whole_ = false;
};

void append_microseconds(std::string& text, std::int64_t nanoseconds) {
  const std::uint64_t length = nanoseconds < 0 ? 0 - static_cast<std::uint64_t>(nanoseconds) : static_cast<std::uint64_t>(nanoseconds);
  fmt::format_to(std::back_inserter(text), "{}{}.{:03}", nanoseconds < 0 ? "-" : "", length / 1000, length % 1000);
}

/// Brings one part's events into the merged file.
class PartMerger {
 public:
  PartMerger(const std::optional<ClockMap>& map, std::set<std::int64_t>& processes, MergedFile& file)
      : map_(map), processes_(processes), file_(file) {}

  /// Returns false where the line is no event.
  bool add(std::string_view line) {
    if (add_plain(line)) return true;
    Json event = Json::parse(line, nullptr, false);
    if (!event.is_object()) return false;
    event["pid"] = process_of(number_in(event, "pid"));
    if (const auto at = event.find("ts"); map_ && at != event.end() && at->is_number())
      *at = static_cast<double>(map_->to_common(std::llround(at->get<double>() * 1000))) / 1000;
    dropped_ += dropped_in(event);
    add_clock(event, map_);
    file_.begin_event() += event.dump(-1, ' ', false, Json::error_handler_t::replace);
    return true;
  }
  std::uint64_t dropped() const { return dropped_; }

 private:
  /// The same for lines of which only numbers change, which are nearly all.
  bool add_plain(std::string_view line) {
    const auto event = EventLine::find(line);
    if (!event || event->name.starts_with("ringlet_trace")) return false;
    std::int64_t process = 0;
    const auto [stop, error] = std::from_chars(event->pid.data(), event->pid.data() + event->pid.size(), process);
    if (error != std::errc() || stop != event->pid.data() + event->pid.size()) return false;
    const auto at = nanoseconds_in(event->ts);
    if (!at && !event->ts.empty()) return false;
    std::string& text = file_.begin_event();
    const char* rest = line.data();
    const auto copy_until = [&](std::string_view number) {
      text.append(rest, number.data());
      rest = number.data() + number.size();
    };
    const auto put_process = [&] {
      copy_until(event->pid);
      fmt::format_to(std::back_inserter(text), "{}", process_of(process));
    };
    const bool has_time = map_ && at, begins_with_time = event->ts.data() < event->pid.data();
    if (!has_time || !begins_with_time) put_process();
    if (has_time) {
      copy_until(event->ts);
      append_microseconds(text, map_->to_common(*at));
      if (begins_with_time) put_process();
    }
    text.append(rest, line.data() + line.size());
    return true;
  }
  std::int64_t process_of(std::int64_t wanted) {
    if (!process_) process_ = process_for(wanted, processes_);
    return *process_;
  }

  const std::optional<ClockMap>& map_;
  std::set<std::int64_t>& processes_;
  MergedFile& file_;
  std::optional<std::int64_t> process_;
  std::uint64_t dropped_ = 0;
};

}  // namespace

std::string name_while_unfinished(const std::string& out) { return out + ".unfinished"; }

Merged merge_traces(const std::vector<std::string>& parts, const std::string& out, const MergeWatch& watch) {
  Merged merged;
  merged.parts = parts.size();
  ReadBytes read(parts, watch);
  std::vector<PartClock> clocks(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    read_lines(parts[i], [&](std::string_view line) {
      read.add(line);
      if (!may_tell_of_clock(line)) return true;
      if (const Json event = Json::parse(line, nullptr, false); event.is_object()) take_clock(event, clocks[i]);
      return true;
    });
  const auto maps = map_clocks(clocks);

  MergedFile file(out);
  std::set<std::int64_t> processes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!maps[i]) merged.unaligned.push_back(parts[i]);
    PartMerger merger(maps[i], processes, file);
    read_lines(parts[i], [&](std::string_view line) {
      read.add(line);
      if (!merger.add(line)) ++merged.unreadable;
      return true;
    });
    merged.dropped += merger.dropped();
  }
  merged.events = file.events();
  file.finish();
  return merged;
}

}  // namespace ringlet::trace
