/* A rank whose trace has spans of its own. With an argument that is the file of its trace; otherwise whoever starts it asks for one. */

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { kSteps = 3, kDeepest = 64 };

static ringlet_trace_span begin(const char* name, int32_t kind) {
  ringlet_trace_span span = 0;
  CHECK_OK(ringlet_trace_span_begin(name, kind, &span));
  return span;
}

static void step(ringlet_group* group) {
  const ringlet_trace_span whole = begin("step", RINGLET_SPAN_WORK);
  const ringlet_trace_span forward = begin("forward", RINGLET_SPAN_WORK);
  CHECK(whole != 0 && forward != 0 && forward != whole);
  ringlet_trace_span_end(forward);
  /* This one has ended, so nothing happens. */
  ringlet_trace_span_end(forward);
  const ringlet_trace_span batch = begin("next batch", RINGLET_SPAN_WAIT);
  ringlet_trace_span_end(batch);
  CHECK_OK(ringlet_barrier(group, NULL));
  /* As after a return in the midst of it. */
  CHECK(begin("left open", RINGLET_SPAN_WORK) != 0);
  ringlet_trace_span_end(whole);
}

static void* other_thread(void* context) {
  const ringlet_trace_span* of_first_thread = context;
  const ringlet_trace_span loading = begin("loading", RINGLET_SPAN_WORK);
  CHECK(loading != 0 && loading != *of_first_thread);
  /* It is not this thread's. */
  ringlet_trace_span_end(*of_first_thread);
  ringlet_trace_span_end(loading);
  /* The thread ends within it. */
  CHECK(begin("never ended", RINGLET_SPAN_WORK) != 0);
  return NULL;
}

static void use_threads(void) {
  pthread_t thread;
  ringlet_trace_span around = begin("around a thread", RINGLET_SPAN_WORK);
  CHECK(pthread_create(&thread, NULL, other_thread, &around) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  ringlet_trace_span_end(around);
}

/* The child has the thread's open spans, but it writes no trace. */
static void fork_within(void) {
  const ringlet_trace_span around = begin("around a fork", RINGLET_SPAN_WORK);
  int status = -1;
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    ringlet_trace_span_end(around);
    _exit(begin("in the child", RINGLET_SPAN_WORK) == 0 ? 0 : 1);
  }
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ringlet_trace_span_end(around);
}

static void nest_too_deep(void) {
  const ringlet_trace_span outermost = begin("deep", RINGLET_SPAN_WORK);
  for (int depth = 1; depth < kDeepest; ++depth) CHECK(begin("deep", RINGLET_SPAN_WORK) != 0);
  CHECK(begin("deeper", RINGLET_SPAN_WORK) == 0);
  ringlet_trace_span_end(outermost);
}

int main(int argc, char** argv) {
  ringlet_group* group = NULL;
  ringlet_init_options options;
  CHECK_OK(ringlet_init_options_init(&options, sizeof options));
  CHECK(options.trace == NULL);
  if (argc == 2) options.trace = argv[1];
  const ringlet_trace_span too_early = begin("before init", RINGLET_SPAN_WORK);
  CHECK(too_early == 0);
  CHECK_OK(ringlet_init(&options, &group));
  ringlet_trace_span_end(too_early);
  for (int i = 0; i < kSteps; ++i) step(group);
  use_threads();
  fork_within();
  nest_too_deep();
  ringlet_group_free(group);
  return 0;
}
