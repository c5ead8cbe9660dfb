#pragma once

#include <ringlet/detail/language.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace ringlet {

/// What the time of a span counts as in the sums of `ringlet trace summary`.
enum class SpanKind : std::uint8_t {
  work,  ///< the program computes, reads or writes
  wait,  ///< this thread waits for others; Ringlet's own calls record this by themselves
};

#if defined(__EMSCRIPTEN__)

/// A browser keeps no trace.
class TraceSpan {
 public:
  explicit TraceSpan(std::string_view /*name*/, SpanKind /*kind*/ = SpanKind::work) noexcept {}
  ~TraceSpan() {}
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;
  static bool is_on() noexcept { return false; }
  void end() noexcept {}
  void drop() noexcept {}
};

#else

namespace detail {
/// Whether this process writes a trace. Set by init(), where a trace was asked for, before it returns.
extern std::atomic<bool> trace_is_on;

/// The name of a span as it is kept: at most its first 39 bytes, which end between characters of UTF-8, and zeros.
struct SpanName {
  std::array<char, 40> text;  ///< ends with a zero
  /// Cuts `name` to what is kept.
  static SpanName of(std::string_view name) noexcept;
};
}  // namespace detail

/// A part of a program's work in the trace that `ringlet launch --trace FILE`, RINGLET_TRACE or InitOptions::trace makes: from its
/// construction to its end, on the line of the thread that ended it. Without a trace it costs one branch. Spans of one thread lie within or
/// beside each other. The class itself is not thread-safe.
///
///     {
///       const ringlet::TraceSpan span("forward");
///       forward(batch);
///     }
class TraceSpan {
 public:
  /// Copies the name, UTF-8, of which as many characters are kept as fit into 39 bytes.
  explicit TraceSpan(std::string_view name, SpanKind kind = SpanKind::work) noexcept : kind_(kind) {
    if (is_on()) begin(name);
  }
  ~TraceSpan() { end(); }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  /// Whether this process writes a trace, so that a name that takes time to make is worth it. Any thread.
  static bool is_on() noexcept { return detail::trace_is_on.load(std::memory_order_relaxed); }

  /// Ends the span before its destructor does. Later calls do nothing.
  void end() noexcept {
    if (begun_ns_ != 0) record();
  }
  /// Ends the span without a record of it, so that it may be destroyed by another thread.
  void drop() noexcept { begun_ns_ = 0; }

 private:
  void begin(std::string_view name) noexcept;
  void record() noexcept;

  std::int64_t begun_ns_ = 0;  // 0: it is not recorded
  SpanKind kind_;
  detail::SpanName name_;  // set where it is recorded
};

#endif

}  // namespace ringlet
