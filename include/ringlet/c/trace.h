#pragma once

/** @file
 * A program's own spans in the trace of its ranks (docs/trace.md). */

#include <ringlet/c/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the time of a span counts as in the sums of `ringlet trace summary`: the program computes, reads or writes; or its thread waits for
 * others, which calls of this library record by themselves. */
enum { RINGLET_SPAN_WORK = 0, RINGLET_SPAN_WAIT = 1 };

/** A part of a program's work in the trace: the number of a span that a thread has begun, or 0. Nothing has to be freed, and the number of
 * a span that has ended does no harm. */
typedef uint64_t ringlet_trace_span;

/** Begins a span on the calling thread's line of the trace that `ringlet launch --trace FILE`, RINGLET_TRACE or ringlet_init_options::trace
 * makes. `name` is copied, UTF-8, of which as many characters are kept as fit into 39 bytes; `kind` is RINGLET_SPAN_WORK or
 * RINGLET_SPAN_WAIT. Where this process writes no trace, or none yet, or the thread has 64 open spans, `*span` becomes 0 and nothing is
 * recorded. Without a trace that costs a few branches. Any thread. */
RINGLET_API int32_t ringlet_trace_span_begin(const char* name, int32_t kind, ringlet_trace_span* span);
/** Ends a span of the calling thread, and those that were begun within it and are still open, so that a thread's spans always lie within or
 * beside each other. Does nothing for 0, for a span that has ended, and for another thread's. What is open when its thread ends is not
 * recorded. Like the functions that free handles it does not count as a call: the thread's last error stays. Never fails. */
RINGLET_API void ringlet_trace_span_end(ringlet_trace_span span);

#ifdef __cplusplus
}
#endif
