#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <ringlet/trace.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/ports/trace.hpp"
#include "native/trace/trace_events.hpp"
#include "native/trace/trace_file.hpp"
#include "native/trace/trace_settings.hpp"

namespace ringlet::native {

/// The trace of this process. Each thread that records has a buffer of its own, which one thread empties into the file all the time; an
/// event for which a buffer has no room is dropped and counted, so that nobody waits for the disk. It exists until the process ends. Any
/// thread.
class Recorder final : public Trace {
 public:
  static constexpr std::size_t kBufferEvents = 4096;  // of each thread
  static constexpr std::size_t kMostThreads = 256;    // that record at the same time
  static constexpr std::size_t kMostTracks = 1024;

  /// Makes the part of `file` that is this rank's. Throws `TraceFileInUse` where another process writes that, `InvalidArgument` where it
  /// fails otherwise.
  explicit Recorder(const TraceSettings& settings);
  /// Writes into an open file, which it takes over.
  Recorder(const TraceSettings& settings, int descriptor);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  Instant now() const override;
  std::uint32_t add_track(const std::string& name) override;
  void record(const TraceRecord& record) override;
  void record(const ClockReading& reading) override;
  /// On the track of the calling thread. The name is copied; see TraceSpan.
  void record_span(const detail::SpanName& name, SpanKind kind, Instant begin);
  void enter(const TracedWorld& world);
  /// Writes what is left, and the end of the file. What is recorded afterwards is lost. A process that was alone all the time has no part:
  /// its file gets the trace's own name. One that met nobody, because the meeting failed, leaves its part, and the trace of before, as they
  /// are.
  void finish();
  /// In a forked process, which may call nothing else of this object.
  void leave_to_parent() {
    // The lock ends when the parent closes the file, which this process must not have open then.
    file_.close();
  }
  const std::string& path() const { return file_.path(); }

 private:
  struct Event {
    enum class Kind : std::uint8_t { record, clock, span } kind;
    TraceRecord record;
    ClockReading clock;
    detail::SpanName name;
  };
  /// Filled by one thread and emptied by the writer.
  struct Buffer {
    std::array<Event, kBufferEvents> events;
    std::atomic<std::uint64_t> added{0}, taken{0};
    std::atomic<std::uint64_t> dropped{0};
    std::atomic<bool> in_use{true};  // by a thread
    std::uint32_t track = 0;
  };
  class Holder;

  Buffer* buffer_of_this_thread();
  std::shared_ptr<Buffer> take_buffer();
  template <class Fill>
  void add(Fill fill);
  std::uint32_t add_track_locked(const std::string& name);
  void begin();
  void write_in_background();
  /// Returns the most events that were in one buffer.
  std::uint64_t write();
  void add_to_file(Event& event);
  const std::string& track_name(std::uint32_t track);
  std::uint64_t write_or_end() noexcept;
  std::uint64_t dropped_by_threads();
  void warn(const std::string& text) const;

  const TraceSettings settings_;
  const bool names_file_;  // or it was given one
  const std::uint64_t id_;
  TraceFile file_;           // the writer's alone
  std::uint64_t pairs_ = 0;  // of events that it has written; the writer's alone
  EventText text_;           // of the event that it adds; the writer's alone
  std::atomic<bool> ended_{false};
  std::atomic<std::uint64_t> dropped_without_buffer_{0};
  std::mutex mutex_;
  std::condition_variable stops_;
  bool stopping_ = false;
  int largest_world_ = 0;  // so far; 0: it has met nobody yet
  std::map<std::string, std::uint32_t> tracks_;
  std::vector<const std::string*> track_names_;  // the keys of `tracks_`, by number
  std::vector<std::string> lines_;               // events that were no thread's, and names
  std::vector<std::shared_ptr<Buffer>> buffers_;
  std::thread writer_;
};

/// This process' recorder; null where there is none.
Recorder* recorder() noexcept;
/// Returns this process' recorder, which is made where there is none yet; null where the settings name no file, or the given one is not
/// here, or where another process writes its part, which is told on stderr. A process has one file, also where it forms several groups.
/// Throws `InvalidArgument` where the file cannot be made.
Recorder* open_trace(const TraceSettings& settings);

}  // namespace ringlet::native
