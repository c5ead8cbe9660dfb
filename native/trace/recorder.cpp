#include "native/trace/recorder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <ringlet/trace.hpp>
#include <utility>

#include "core/base/printable.hpp"
#include "core/base/refuse.hpp"
#include "native/own_process.hpp"
#include "native/tell.hpp"
#include "native/this_process.hpp"
#include "native/trace/clock_name.hpp"
#include "transport/unique_fd.hpp"

namespace ringlet {

std::atomic<bool> detail::trace_is_on{false};

namespace native {

namespace {

constexpr std::chrono::milliseconds kWritePause{20}, kShortWritePause{2};
// After so many events of one thread in a pause the next pauses are short: for a second, as programs have their steps.
constexpr std::uint64_t kManyEvents = Recorder::kBufferEvents / 8;
constexpr int kShortPauses = 500;
// Formed in a row: a rank that polls for its peers gives the processor to this thread, and sleeps if that takes long.
constexpr std::uint64_t kEventsAtOnce = 512;

std::atomic<Recorder*> the_recorder{nullptr};
std::atomic<std::uint64_t> recorders{0};
int process_of_recorder = 0;

void finish_trace() {
  Recorder* ended = the_recorder.load();
  // In a forked process it is the other one's file, and the thread that writes it is not there.
  if (ended == nullptr || process_of_recorder != ::getpid()) return;
  detail::trace_is_on = false;
  the_recorder = nullptr;
  ended->finish();
}

const std::string& checked_file(const TraceSettings& settings) {
  if (const auto obstacle = find_obstacle(settings.file))
    refuse(fmt::format("the trace {} cannot be written: {}; name a file", quoted_trace(settings.file, settings.variable), *obstacle));
  return settings.file;
}

void forget_trace() {
  if (Recorder* other = the_recorder.load()) other->leave_to_parent();
  detail::trace_is_on = false;
  the_recorder = nullptr;
}

}  // namespace

/// A thread's buffer, which is free for another thread when this one ends. It may outlive its recorder.
class Recorder::Holder {
 public:
  ~Holder() { give_back(); }
  void give_back() {
    if (buffer != nullptr) buffer->in_use.store(false, std::memory_order_release);
    buffer.reset();
  }
  std::shared_ptr<Buffer> buffer;
  std::uint64_t owner = 0;  // the recorder's id, since another one may be at the same address
};

Recorder::Recorder(const TraceSettings& settings)
    : settings_(settings),
      names_file_(true),
      id_(++recorders),
      file_(name_of_trace_part(checked_file(settings), part_of_rank(settings.rank, settings.joined_in_epoch)), settings.variable,
            settings.most_bytes) {
  begin();
}

Recorder::Recorder(const TraceSettings& settings, int descriptor)
    : settings_(settings), names_file_(false), id_(++recorders), file_(descriptor, "the launcher's file in TMPDIR", settings.most_bytes) {
  begin();
}

void Recorder::begin() {
  const Identity process = this_process();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  // At once, so that another process learns whose file this is.
  file_.add(
      header_of_trace(settings_.rank, name_of_this_clock(), process, std::chrono::duration_cast<std::chrono::milliseconds>(now).count()));
  file_.flush();
  lines_.push_back(
      name_of_process(settings_.rank, fmt::format("rank {} ({}, {}, pid {})", settings_.rank, process.host, process.program, process.pid)));
  writer_ = std::thread([this] { write_in_background(); });
}

Recorder::~Recorder() { finish(); }

Instant Recorder::now() const {
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

std::uint32_t Recorder::add_track(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return add_track_locked(name);
}

std::uint32_t Recorder::add_track_locked(const std::string& name) {
  if (const auto known = tracks_.find(name); known != tracks_.end()) return known->second;
  // Groups come and go, and each has its streams.
  if (tracks_.size() >= kMostTracks) return static_cast<std::uint32_t>(kMostTracks);
  const auto track = static_cast<std::uint32_t>(tracks_.size() + 1);
  track_names_.push_back(&tracks_.emplace(name, track).first->first);
  lines_.push_back(name_of_track(settings_.rank, track, name));
  return track;
}

std::shared_ptr<Recorder::Buffer> Recorder::take_buffer() {
  const std::lock_guard lock(mutex_);
  for (const auto& buffer : buffers_) {
    bool in_use = false;
    // A thread that has ended may have left it full.
    if (buffer->added.load() - buffer->taken.load() > kBufferEvents / 2) continue;
    if (buffer->in_use.compare_exchange_strong(in_use, true, std::memory_order_acquire)) return buffer;
  }
  if (buffers_.size() >= kMostThreads) return nullptr;
  buffers_.push_back(std::make_shared<Buffer>());
  buffers_.back()->track = add_track_locked(fmt::format("thread {}", buffers_.size()));
  return buffers_.back();
}

Recorder::Buffer* Recorder::buffer_of_this_thread() {
  thread_local Holder holder;
  if (holder.owner != id_) {
    holder.owner = id_;
    holder.give_back();
    try {
      holder.buffer = take_buffer();
    } catch (const std::bad_alloc&) {
      // What this thread does is counted as dropped.
    }
  }
  return holder.buffer.get();
}

template <class Fill>
void Recorder::add(Fill fill) {
  if (ended_.load(std::memory_order_relaxed)) return;
  Buffer* buffer = buffer_of_this_thread();
  if (buffer == nullptr) {
    ++dropped_without_buffer_;
    return;
  }
  const std::uint64_t at = buffer->added.load(std::memory_order_relaxed);
  if (at - buffer->taken.load(std::memory_order_acquire) == kBufferEvents) {
    buffer->dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  fill(buffer->events[at % kBufferEvents], *buffer);
  buffer->added.store(at + 1, std::memory_order_release);
}

void Recorder::record(const TraceRecord& record) {
  add([&](Event& event, const Buffer&) {
    event.kind = Event::Kind::record;
    event.record = record;
  });
}

void Recorder::record(const ClockReading& reading) {
  add([&](Event& event, const Buffer&) {
    event.kind = Event::Kind::clock;
    event.clock = reading;
  });
}

void Recorder::record_span(const detail::SpanName& name, SpanKind kind, Instant begin) {
  const Instant end = now();
  add([&](Event& event, const Buffer& buffer) {
    event.kind = Event::Kind::span;
    event.name = name;
    event.record = {};
    event.record.track = buffer.track;
    event.record.category = kind == SpanKind::wait ? kWaitCategory : kProgramCategory;
    event.record.begin = begin;
    event.record.end = end;
  });
}

void Recorder::enter(const TracedWorld& world) {
  const std::lock_guard lock(mutex_);
  largest_world_ = std::max(largest_world_, world.size);
  lines_.push_back(to_trace_event(world, now(), settings_.rank));
}

void Recorder::write_in_background() {
  int short_pauses = kShortPauses;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    stops_.wait_for(lock, short_pauses > 0 ? kShortWritePause : kWritePause, [this] { return stopping_; });
    lock.unlock();
    short_pauses = write_or_end() < kManyEvents ? std::max(short_pauses - 1, 0) : kShortPauses;
    lock.lock();
  }
}

std::uint64_t Recorder::write_or_end() noexcept {
  try {
    return write();
  } catch (const std::bad_alloc&) {
    // A program that is short of memory goes on without its trace.
    ended_ = true;
    detail::trace_is_on = false;
    std::fputs("ringlet: the trace ends here, and the program goes on without it: there is no memory\n", stderr);
  }
  return 0;
}

std::uint64_t Recorder::write() {
  std::vector<std::string> lines;
  std::vector<Buffer*> buffers;
  {
    const std::lock_guard lock(mutex_);
    lines.swap(lines_);
    for (const auto& buffer : buffers_) buffers.push_back(buffer.get());
  }
  for (const std::string& line : lines) file_.add(line);
  std::uint64_t most = 0;
  for (Buffer* buffer : buffers) {
    const std::uint64_t added = buffer->added.load(std::memory_order_acquire), taken = buffer->taken.load(std::memory_order_relaxed);
    most = std::max(most, added - taken);
    for (std::uint64_t at = taken; at != added; ++at) {
      add_to_file(buffer->events[at % kBufferEvents]);
      buffer->taken.store(at + 1, std::memory_order_release);
      if ((at + 1) % kEventsAtOnce == 0) std::this_thread::yield();
    }
  }
  if (ended_ || file_.flush()) return most;
  ended_ = true;
  detail::trace_is_on = false;
  warn("the trace ends here, and the program goes on without it: '" + file_.path() + "' cannot be written: " + file_.error());
  return most;
}

void Recorder::add_to_file(Event& event) {
  if (event.kind == Event::Kind::clock) return file_.add(to_trace_event(event.clock, settings_.rank));
  if (event.kind == Event::Kind::span) event.record.name = event.name.text.data();
  text_.clear();
  if (event.record.overlaps)
    text_.add_pair(event.record, settings_.rank, track_name(event.record.track), pairs_++);
  else
    text_.add_span(event.record, settings_.rank);
  file_.add(text_.text());
}

const std::string& Recorder::track_name(std::uint32_t track) {
  const std::lock_guard lock(mutex_);
  return *track_names_.at(track - 1);
}

void Recorder::finish() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stops_.notify_all();
  if (!writer_.joinable()) return;
  writer_.join();
  if (ended_) return;
  write_or_end();
  if (ended_.exchange(true)) return;
  const std::uint64_t by_threads = dropped_by_threads();
  bool whole = file_.finish(end_of_trace(settings_.rank, by_threads, file_.dropped()));
  const bool is_alone = names_file_ && largest_world_ == 1;
  // As long as the file is open, it is no other process'.
  if (whole && is_alone && !file_.rename(behind_links(settings_.file)))
    warn(fmt::format("the trace is in '{}', and cannot be renamed to '{}': {}", file_.path(), settings_.file, std::strerror(errno)));
  whole = file_.close() && whole;
  if (!whole) return warn("the end of the trace '" + file_.path() + "' could not be written: " + file_.error());
  const std::string in_file = names_file_ ? fmt::format(" '{}'", file_.path()) : "";
  if (by_threads > 0) warn(fmt::format("the trace{} lacks {} events, which came faster than they could be written", in_file, by_threads));
  if (file_.dropped() > 0)
    warn(fmt::format("the trace{} lacks the last {} events: it has reached {} MiB, its limit; RINGLET_TRACE_MIB sets another", in_file,
                     file_.dropped(), settings_.most_bytes >> 20));
  if (names_file_ && largest_world_ > 1 && settings_.rank == 0 && settings_.joined_in_epoch == 0)
    warn(fmt::format(
        "each rank's part of the trace is beside '{0}' on its machine, this one's is '{1}'; `ringlet trace merge '{0}'` makes one "
        "file of those that are in one directory",
        settings_.file, file_.path()));
}

std::uint64_t Recorder::dropped_by_threads() {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = dropped_without_buffer_;
  for (const auto& buffer : buffers_) sum += buffer->dropped;
  return sum;
}

void Recorder::warn(const std::string& text) const { tell(settings_.rank, text); }

Recorder* recorder() noexcept { return the_recorder.load(std::memory_order_acquire); }

Recorder* open_trace(const TraceSettings& settings) {
  static PerProcess<std::mutex> opening;
  if (settings.file.empty() && !settings.given_file) return nullptr;
  const std::lock_guard lock(opening.get());
  if (Recorder* open = recorder()) return open;
  UniqueFd given = settings.given_file ? take_given_file(*settings.given_file) : UniqueFd();
  if (!given && settings.file.empty()) return nullptr;
  std::unique_ptr<Recorder> made;
  try {
    made = given ? std::make_unique<Recorder>(settings, given.release()) : std::make_unique<Recorder>(settings);
  } catch (const TraceFileInUse& in_use) {
    tell(settings.rank, fmt::format("the trace is not written: {}; name another file for this job", in_use.what()));
    return nullptr;
  }
  process_of_recorder = ::getpid();
  [[maybe_unused]] static const bool ends = (run_at_exit(finish_trace), run_after_fork(forget_trace), true);
  // Threads may record until the process ends, so it is never destroyed.
  the_recorder.store(made.release(), std::memory_order_release);
  detail::trace_is_on = true;
  return recorder();
}

}  // namespace native

detail::SpanName detail::SpanName::of(std::string_view name) noexcept {
  SpanName kept{};
  const std::string_view begin = cut_text(name, kept.text.size() - 1);
  std::copy(begin.begin(), begin.end(), kept.text.begin());
  return kept;
}

void TraceSpan::begin(std::string_view name) noexcept {
  const native::Recorder* recorder = native::recorder();
  if (recorder == nullptr) return;
  name_ = detail::SpanName::of(name);
  begun_ns_ = recorder->now().nanoseconds;
}

void TraceSpan::record() noexcept {
  const std::int64_t begun = std::exchange(begun_ns_, 0);
  if (native::Recorder* recorder = native::recorder()) recorder->record_span(name_, kind_, {begun});
}

}  // namespace ringlet
