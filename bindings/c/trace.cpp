#include <ringlet/c/trace.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <string>
#include <type_traits>

#include "bindings/c/arguments.hpp"
#include "native/trace/recorder.hpp"

using namespace ringlet::c;

namespace {

struct OpenSpan {
  ringlet_trace_span number;
  ringlet::detail::SpanName name;
  ringlet::SpanKind kind;
  ringlet::Instant begin;
};

/// Those of one thread, the outermost first.
struct OpenSpans {
  std::array<OpenSpan, 64> spans;
  std::size_t count;
};
// What is destroyed at a thread's end could come behind the thread's buffer of the recorder.
static_assert(std::is_trivially_destructible_v<OpenSpans>);
thread_local OpenSpans open_spans{};

// Of all threads, so that a number is that of no other thread's span.
std::atomic<ringlet_trace_span> spans_begun{0};

ringlet::SpanKind span_kind(int32_t kind) {
  if (kind == RINGLET_SPAN_WORK) return ringlet::SpanKind::work;
  if (kind == RINGLET_SPAN_WAIT) return ringlet::SpanKind::wait;
  throw BadArgument("kind is " + std::to_string(kind) + "; it may be RINGLET_SPAN_WORK or RINGLET_SPAN_WAIT");
}

ringlet_trace_span begin_span(const char* name, ringlet::SpanKind kind) noexcept {
  const ringlet::native::Recorder* recorder = ringlet::native::recorder();
  OpenSpans& open = open_spans;
  if (recorder == nullptr || open.count == open.spans.size()) return 0;
  const ringlet_trace_span number = spans_begun.fetch_add(1, std::memory_order_relaxed) + 1;
  open.spans[open.count++] = {number, ringlet::detail::SpanName::of(name), kind, recorder->now()};
  return number;
}

}  // namespace

int32_t ringlet_trace_span_begin(const char* name, int32_t kind, ringlet_trace_span* span) {
  return guarded(__func__, [&] {
    *required(span, "span") = 0;
    required(name, "name");
    *span = begin_span(name, span_kind(kind));
  });
}

void ringlet_trace_span_end(ringlet_trace_span span) {
  OpenSpans& open = open_spans;
  std::size_t outermost = open.count;
  while (outermost > 0 && open.spans[outermost - 1].number != span) --outermost;
  if (outermost == 0) return;
  // In a forked process there is no recorder.
  ringlet::native::Recorder* recorder = ringlet::native::recorder();
  while (open.count >= outermost) {
    const OpenSpan& ended = open.spans[--open.count];
    if (recorder != nullptr) recorder->record_span(ended.name, ended.kind, ended.begin);
  }
}
