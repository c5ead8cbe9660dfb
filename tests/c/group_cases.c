/* Tests of groups, works and errors. */

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cases.h"
#include "check.h"

void test_groups(const world* w) {
  ringlet_group* part = NULL;
  int32_t rank = -1, size = -1;
  const int64_t one = 1;
  float value = (float)w->rank;
  const ringlet_tensor values = floats(&value, &one);

  /* The last rank gets a group of its own; the others are in reverse order. */
  CHECK_OK(ringlet_group_split(w->group, w->rank == w->size - 1 ? 1 : 0, w->size - w->rank, NULL, &part));
  CHECK_OK(ringlet_group_rank(part, &rank));
  CHECK_OK(ringlet_group_size(part, &size));
  CHECK(size == (w->rank == w->size - 1 ? 1 : w->size - 1));
  CHECK(rank == (w->rank == w->size - 1 ? 0 : w->size - 2 - w->rank));
  CHECK_OK(ringlet_all_reduce(part, RINGLET_SUM, &values, &values, NULL));
  CHECK(value == (w->rank == w->size - 1 ? (float)(w->size - 1) : (float)((w->size - 1) * (w->size - 2) / 2)));

  ringlet_group* copy = NULL;
  CHECK_OK(ringlet_group_copy(part, &copy));
  ringlet_group_free(part);
  CHECK_OK(ringlet_barrier(copy, NULL));
  ringlet_group_free(copy);

  CHECK_OK(ringlet_group_split(w->group, w->rank == 0 ? -1 : 0, -1, NULL, &part));
  CHECK((part == NULL) == (w->rank == 0));
  ringlet_group_free(part);

  if (w->rank > 0) {
    const int32_t members[2] = {2, 1}, missing[2] = {1, 9};
    CHECK_CODE(ringlet_group_create(w->group, missing, 2, 0, NULL, &part), RINGLET_INVALID_ARGUMENT);
    CHECK_MESSAGE("no rank 9");
    CHECK_OK(ringlet_group_create(w->group, members, 2, 5, NULL, &part));
    CHECK_OK(ringlet_group_rank(part, &rank));
    CHECK(rank == 2 - w->rank);
    value = (float)w->rank;
    CHECK_OK(ringlet_all_reduce(part, RINGLET_SUM, &values, &values, NULL));
    CHECK(value == 3);
    ringlet_group_free(part);
  }

  const char* algorithm = NULL;
  CHECK_OK(ringlet_group_algorithm(w->group, "all_reduce", 64 << 20, &algorithm));
  CHECK(strcmp(algorithm, "ring") == 0);
  CHECK_CODE(ringlet_group_algorithm(w->group, "gossip", 4, &algorithm), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("'gossip'");

  CHECK_OK(ringlet_group_of_one(&part));
  CHECK_OK(ringlet_all_reduce(part, RINGLET_SUM, &values, &values, NULL));
  ringlet_group_free(part);
}

/* Starts a receive that cannot end yet, and runs collectives on another stream meanwhile. */
void test_works(const world* w) {
  ringlet_call_options options;
  CHECK_OK(ringlet_call_options_init(&options, sizeof options));
  options.stream = 1;
  const int64_t one = 1;
  float value = 0;
  const ringlet_tensor values = floats(&value, &one);
  ringlet_work* work = NULL;
  int32_t done = 1;
  if (w->rank == 0) {
    CHECK_OK(ringlet_recv_async(w->group, &values, 1, &options, &work));
    CHECK_OK(ringlet_work_wait_for(work, 0, &done));
    CHECK(done == 0);
  }
  CHECK_OK(ringlet_barrier(w->group, NULL));
  if (w->rank == 1) {
    value = 42;
    CHECK_OK(ringlet_send(w->group, &values, 0, &options));
  }
  if (w->rank == 0) {
    options.timeout_ms = 60000;
    CHECK_OK(ringlet_work_wait_for(work, 60000, &done));
    CHECK(done == 1 && value == 42);
    ringlet_work_free(work);
  }
}

typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int32_t calls, code, rank;
  int says_why;
} told;

static void tell(void* context, int32_t code) {
  told* t = context;
  pthread_mutex_lock(&t->mutex);
  ++t->calls;
  t->code = code;
  t->rank = ringlet_error_rank();
  t->says_why = strstr(ringlet_error_message(), "rank 99") != NULL;
  pthread_cond_signal(&t->changed);
  pthread_mutex_unlock(&t->mutex);
}

static void await_calls(told* t, int32_t calls) {
  pthread_mutex_lock(&t->mutex);
  while (t->calls < calls) pthread_cond_wait(&t->changed, &t->mutex);
  pthread_mutex_unlock(&t->mutex);
}

void test_call_backs(const world* w) {
  told t = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, -1, 0, 0};
  const int64_t one = 1;
  float value = 1;
  const ringlet_tensor values = floats(&value, &one);
  ringlet_work* work = NULL;
  CHECK_OK(ringlet_all_reduce_async(w->group, RINGLET_SUM, &values, &values, NULL, &work));
  CHECK_OK(ringlet_work_on_done(work, tell, &t));
  ringlet_work_free(work);
  await_calls(&t, 1);
  CHECK(t.code == RINGLET_OK && value == (float)w->size);
  CHECK_OK(ringlet_broadcast_async(w->group, &values, 99, NULL, &work));
  CHECK_OK(ringlet_work_on_done(work, tell, &t));
  await_calls(&t, 2);
  CHECK(t.code == RINGLET_INVALID_ARGUMENT && t.rank == -1 && t.says_why);
  CHECK_CODE(ringlet_work_on_done(work, NULL, &t), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("function is NULL");
  ringlet_work_free(work);
}

/* Opens a socket on the loopback, and gets its port. */
static int listening_socket(uint16_t* port) {
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(fd >= 0 && bind(fd, (struct sockaddr*)&address, size) == 0 && listen(fd, 16) == 0);
  CHECK(getsockname(fd, (struct sockaddr*)&address, &size) == 0);
  *port = ntohs(address.sin_port);
  return fd;
}

/* Counts how often it is asked, and interrupts at the second time. */
static int32_t interrupt_soon(void* context) { return ++*(int32_t*)context >= 2; }

/* A group meets at a socket that rank 0 has opened, as by the store of another library, whatever the environment says. */
void test_own_meeting(const world* w) {
  ringlet_init_options options;
  ringlet_group* group = NULL;
  char coordinator[32];
  uint16_t port = 0;
  int fd = -1;
  int32_t asked = -1000000, code;
  const int64_t one = 1;
  const ringlet_tensor told_port = {&port, RINGLET_U16, 1, &one, NULL};
  float value = 1;
  const ringlet_tensor values = floats(&value, &one);
  const char* algorithm = NULL;
  CHECK_OK(ringlet_init_options_init(&options, sizeof options));
  if (w->rank == 0) fd = listening_socket(&port);
  CHECK_OK(ringlet_broadcast(w->group, &told_port, 0, NULL));
  snprintf(coordinator, sizeof coordinator, "127.0.0.1:%u", (unsigned)port);
  options.rank = w->rank;
  options.world_size = w->size;
  options.coordinator = coordinator;
  options.listen_fd = fd;
  options.token = "a token of this group alone";
  options.listen = "127.0.0.1";
  options.encrypt = 0;
  options.elastic = 0;
  options.guests = 0;
  options.order = 2;
  CHECK_CODE(ringlet_init(&options, &group), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("order is 2");
  options.order = RINGLET_ORDER_RANK;
  options.parts = 3;
  CHECK_CODE(ringlet_init(&options, &group), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("parts is 3");
  options.parts = RINGLET_PARTS_PASSIVE;
  if (w->rank == 0) options.interrupted = interrupt_soon;
  options.interrupted_context = &asked;
  CHECK_OK(ringlet_init(&options, &group));
  CHECK_OK(ringlet_all_reduce(group, RINGLET_SUM, &values, &values, NULL));
  CHECK(value == (float)w->size);
  CHECK_OK(ringlet_group_algorithm(group, "all_reduce", 64u << 20, &algorithm));
  CHECK(strcmp(algorithm, w->size == 2 ? "ring" : "direct") == 0);
  asked = 0;
  code = w->rank == 0 ? ringlet_recv(group, &values, 1, NULL) : ringlet_barrier(group, NULL);
  CHECK(code == RINGLET_CANCELLED);
  CHECK_MESSAGE("rank 0 was interrupted");
  ringlet_group_free(group);
  if (fd >= 0) CHECK(close(fd) == 0);
}

/* Each of these mistakes is made by one rank, which alone gets the error. */
void test_arguments(const world* w) {
  const int64_t three = 3, four = 4, negative = -1, standing = 0, huge[2] = {INT64_MAX, INT64_MAX};
  float elements[4] = {0};
  const ringlet_tensor good = floats(elements, &three), longer = floats(elements, &four);
  ringlet_tensor bad = good;
  ringlet_call_options options;
  ringlet_work* work = NULL;

  CHECK_CODE(ringlet_all_reduce(w->group, 7, &good, &good, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("operation number 7");
  CHECK_CODE(ringlet_all_reduce(w->group, RINGLET_SUM, &good, NULL, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("ringlet_all_reduce: output is NULL");
  CHECK(ringlet_error_rank() == -1);
  CHECK_CODE(ringlet_all_reduce(w->group, RINGLET_SUM, &good, &longer, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("input has 3 elements but output has 4");
  bad.dtype = 256 + RINGLET_F32;
  CHECK_CODE(ringlet_broadcast(w->group, &bad, 0, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("dtype number 267");
  bad = good;
  bad.axes = -1;
  CHECK_CODE(ringlet_broadcast(w->group, &bad, 0, NULL), RINGLET_INVALID_ARGUMENT);
  bad.axes = 9;
  CHECK_CODE(ringlet_broadcast(w->group, &bad, 0, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("9 axes");
  bad = good;
  bad.shape = NULL;
  CHECK_CODE(ringlet_broadcast(w->group, &bad, 0, NULL), RINGLET_INVALID_ARGUMENT);
  bad.shape = &negative;
  CHECK_CODE(ringlet_broadcast(w->group, &bad, 0, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("extent -1");
  bad.axes = 2;
  bad.shape = huge;
  bad.strides = huge;
  CHECK_CODE(ringlet_broadcast(w->group, &bad, 0, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("impossible shape");
  bad = good;
  bad.strides = &standing;
  CHECK_CODE(ringlet_broadcast(w->group, &bad, 0, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("share memory");
  bad = good;
  bad.data = NULL;
  CHECK_CODE(ringlet_broadcast(w->group, &bad, 0, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_CODE(ringlet_broadcast(w->group, &good, w->size, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_CODE(ringlet_all_gather_v(w->group, &good, &good, NULL, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("counts is NULL");

  memset(&options, 0, sizeof options);
  CHECK_CODE(ringlet_barrier(w->group, &options), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("struct_size");
  CHECK_OK(ringlet_call_options_init(&options, sizeof options));
  options.stream = 65536;
  CHECK_CODE(ringlet_barrier(w->group, &options), RINGLET_INVALID_ARGUMENT);
  options.stream = 0;
  options.timeout_ms = -5;
  CHECK_CODE(ringlet_barrier_async(w->group, &options, &work), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("timeout_ms is -5");
  CHECK(work == NULL);
  /* None of the errors above has disturbed the group. */
  CHECK_OK(ringlet_barrier(w->group, NULL));
  CHECK(strcmp(ringlet_error_message(), "") == 0);
}

void test_mismatch(const world* w) {
  const int64_t three = 3, four = 4;
  float elements[4] = {0};
  const ringlet_tensor values = floats(elements, w->rank == 1 ? &four : &three);
  /* Once one rank has left the barrier, every rank's earlier calls have ended; the others' mismatch may overtake the barrier itself. */
  int32_t code = ringlet_barrier(w->group, NULL);
  CHECK(code == RINGLET_OK || code == RINGLET_MISMATCH);
  code = ringlet_all_reduce(w->group, RINGLET_SUM, &values, &values, NULL);
  CHECK(code == RINGLET_MISMATCH);
  CHECK_MESSAGE("all_reduce");
  CHECK(strcmp(ringlet_code_name(code), "mismatch") == 0);
  CHECK_CODE(ringlet_barrier(w->group, NULL), RINGLET_MISMATCH);
}

static void check_sum(ringlet_group* group, int32_t size) {
  const int64_t one = 1;
  float value = 1;
  const ringlet_tensor sum = floats(&value, &one);
  CHECK_OK(ringlet_all_reduce(group, RINGLET_SUM, &sum, &sum, NULL));
  CHECK(value == (float)size);
}

/* A process of its own to the group. */
static void* join_group(void* door) {
  ringlet_init_options options;
  ringlet_group* group = NULL;
  uint32_t epoch = 0;
  int32_t size = 0, agreed;
  CHECK_OK(ringlet_init_options_init(&options, sizeof options));
  options.join = door;
  CHECK_OK(ringlet_init(&options, &group));
  CHECK_OK(ringlet_group_epoch(group, &epoch));
  CHECK(epoch == 3);
  CHECK_OK(ringlet_group_size(group, &size));
  check_sum(group, size);
  /* The others may have no result yet when this one leaves, so a barrier would not do. */
  CHECK_OK(ringlet_group_agree(group, 1, NULL, &agreed));
  ringlet_group_free(group);
  return NULL;
}

static ringlet_group* test_admit(const ringlet_group* group, int32_t rank, int32_t size) {
  ringlet_group* next = NULL;
  int32_t before[8] = {0}, i, now = 0, agreed;
  char door[264] = "";
  pthread_t newcomer;
  CHECK_CODE(ringlet_group_door(group, door, 3), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("capacity is 3");
  CHECK_OK(ringlet_group_door(group, door, sizeof door));
  if (rank == 0) CHECK(pthread_create(&newcomer, NULL, join_group, door) == 0);
  for (i = 0; i < 1000000 && next == NULL; ++i) CHECK_OK(ringlet_group_admit(group, NULL, &next, before, 8));
  CHECK_OK(ringlet_group_size(next, &now));
  CHECK(now == size + 1 && before[0] == 0 && before[size] == -1);
  check_sum(next, now);
  CHECK_OK(ringlet_group_agree(next, 1, NULL, &agreed));
  if (rank == 0) CHECK(pthread_join(newcomer, NULL) == 0);
  return next;
}

static void test_leave(ringlet_group* group) {
  CHECK_OK(ringlet_group_leave(group));
  CHECK_CODE(ringlet_barrier(group, NULL), RINGLET_CANCELLED);
}

/* After test_mismatch, which ends the world. */
void test_reform(const world* w) {
  ringlet_group *next = NULL, *last = NULL, *grown, *trained = NULL;
  int32_t before[8] = {0}, agreed = -1, code = RINGLET_OK, i;
  uint32_t epoch = 9;
  if (getenv("RINGLET_ELASTIC") == NULL) {
    CHECK_CODE(ringlet_group_reform(w->group, NULL, &next, NULL, 0), RINGLET_INVALID_ARGUMENT);
    CHECK_MESSAGE("RINGLET_ELASTIC=on");
    CHECK_CODE(ringlet_group_admit(w->group, NULL, &next, NULL, 0), RINGLET_INVALID_ARGUMENT);
    CHECK_MESSAGE("RINGLET_ELASTIC=on");
    CHECK_CODE(ringlet_group_rejoin(w->group, &next), RINGLET_INVALID_ARGUMENT);
    CHECK_MESSAGE("not elastic");
    return;
  }
  CHECK_CODE(ringlet_group_rejoin(w->group, &next), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("the others have gone on without this rank");
  CHECK_OK(ringlet_group_reform(w->group, NULL, &next, before, 8));
  for (i = 0; i < w->size; ++i) CHECK(before[i] == i);
  CHECK_OK(ringlet_group_epoch(next, &epoch));
  CHECK(epoch == 1);
  check_sum(next, w->size);
  /* Without a place for the result it is no vote. */
  if (w->rank == 0) CHECK_CODE(ringlet_group_agree(next, 0, NULL, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_OK(ringlet_group_agree(next, 1, NULL, &agreed));
  CHECK(agreed == 1);
  CHECK_OK(ringlet_group_agree(next, w->rank != 0, NULL, &agreed));
  CHECK(agreed == 0);
  if (w->rank == 0) CHECK_OK(ringlet_group_revoke(next));
  while (code == RINGLET_OK) code = ringlet_barrier(next, NULL);
  CHECK(code == RINGLET_CANCELLED);
  CHECK_OK(ringlet_group_reform(next, NULL, &last, NULL, 0));
  check_sum(last, w->size);
  grown = test_admit(last, w->rank, w->size);
  /* The newcomer has left. */
  while (code != RINGLET_PEER_LOST) code = ringlet_barrier(grown, NULL);
  CHECK_OK(ringlet_group_reform(grown, NULL, &trained, NULL, 0));
  test_elastic_trainer(trained, w->rank, w->size);
  test_leave(trained);
  ringlet_group_free(grown);
  ringlet_group_free(trained);
  ringlet_group_free(next);
  ringlet_group_free(last);
}
