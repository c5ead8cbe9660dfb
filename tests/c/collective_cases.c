/* Calls every collective and message, blocking and async. Element i of rank r is r * 100 + i, so that a mix-up shows. */

#include "cases.h"
#include "check.h"

enum { kMaxRanks = 8 };

static void fill(float* elements, int64_t count, int32_t rank) {
  for (int64_t i = 0; i < count; ++i) elements[i] = (float)(rank * 100 + i);
}

/* Returns the sum over all ranks of the value that `fill` gives element `index`. */
static float sum_at(const world* w, int64_t index) { return (float)(w->size * (w->size - 1) / 2 * 100 + w->size * index); }

/* Returns the product of the same values. For three ranks it is exact in a float. */
static float product_at(const world* w, int64_t index) {
  float product = 1;
  for (int32_t r = 0; r < w->size; ++r) product *= (float)(r * 100 + index);
  return product;
}

static void finish(ringlet_work* work) {
  int32_t done = 0;
  CHECK_OK(ringlet_work_wait(work));
  CHECK_OK(ringlet_work_done(work, &done));
  CHECK(done == 1);
  ringlet_work_free(work);
}

void test_collectives(const world* w) {
  const int64_t count = 1000;
  float in[1000], out[1000];
  const ringlet_tensor input = floats(in, &count), output = floats(out, &count);
  ringlet_work* work = NULL;

  fill(in, count, w->rank);
  CHECK_OK(ringlet_all_reduce(w->group, RINGLET_SUM, &input, &output, NULL));
  for (int64_t i = 0; i < count; ++i) CHECK(out[i] == sum_at(w, i));
  CHECK_OK(ringlet_all_reduce_async(w->group, RINGLET_MAX, &input, &output, NULL, &work));
  finish(work);
  for (int64_t i = 0; i < count; ++i) CHECK(out[i] == (float)((w->size - 1) * 100 + i));
  CHECK_OK(ringlet_all_mean(w->group, &input, &output, NULL));
  CHECK(out[7] == sum_at(w, 7) / (float)w->size);
  CHECK_OK(ringlet_all_mean_async(w->group, &input, &input, NULL, &work));
  finish(work);
  CHECK(in[7] == out[7]);

  fill(in, count, w->rank);
  CHECK_OK(ringlet_broadcast(w->group, &input, 1, NULL));
  CHECK(in[3] == 103);
  fill(in, count, w->rank);
  CHECK_OK(ringlet_broadcast_async(w->group, &input, 2, NULL, &work));
  finish(work);
  CHECK(in[3] == 203);

  CHECK_OK(ringlet_barrier(w->group, NULL));
  CHECK_OK(ringlet_barrier_async(w->group, NULL, &work));
  finish(work);

  fill(in, count, w->rank);
  CHECK_OK(ringlet_reduce(w->group, RINGLET_SUM, &input, w->rank == 1 ? &output : NULL, 1, NULL));
  if (w->rank == 1) CHECK(out[5] == sum_at(w, 5));
  CHECK_OK(ringlet_reduce_async(w->group, RINGLET_MIN, &input, w->rank == 0 ? &output : NULL, 0, NULL, &work));
  finish(work);
  if (w->rank == 0) CHECK(out[5] == 5);
  CHECK_OK(ringlet_reduce_mean(w->group, &input, w->rank == 1 ? &output : NULL, 1, NULL));
  if (w->rank == 1) CHECK(out[5] == sum_at(w, 5) / (float)w->size);
  CHECK_OK(ringlet_reduce_mean_async(w->group, &input, w->rank == 0 ? &output : NULL, 0, NULL, &work));
  finish(work);
  if (w->rank == 0) CHECK(out[6] == sum_at(w, 6) / (float)w->size);
}

void test_bits_and_complex(const world* w) {
  const int64_t count = 3;
  uint16_t bits[3] = {(uint16_t)(1 << w->rank), 0xff00, (uint16_t)(0xf0f0 | w->rank)};
  uint16_t result[3];
  double pairs[6] = {1, 2, w->rank, 0, 0, -w->rank};
  const ringlet_tensor in = {bits, RINGLET_U16, 1, &count, NULL}, out = {result, RINGLET_U16, 1, &count, NULL};
  const ringlet_tensor complex = {pairs, RINGLET_COMPLEX128, 1, &count, NULL};
  const ringlet_tensor real = {pairs, RINGLET_F64, 1, &count, NULL};

  CHECK_OK(ringlet_all_reduce(w->group, RINGLET_BIT_OR, &in, &out, NULL));
  CHECK(result[0] == (1 << w->size) - 1 && result[1] == 0xff00);
  CHECK_OK(ringlet_all_reduce(w->group, RINGLET_BIT_AND, &in, &out, NULL));
  CHECK(result[0] == 0 && result[1] == 0xff00 && result[2] == 0xf0f0);
  CHECK_OK(ringlet_all_reduce(w->group, RINGLET_BIT_XOR, &in, &out, NULL));
  CHECK(result[0] == (1 << w->size) - 1 && result[1] == (w->size % 2 == 0 ? 0 : 0xff00));
  CHECK_CODE(ringlet_all_reduce(w->group, RINGLET_BIT_XOR, &real, &real, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("bit_xor of f64");

  CHECK_OK(ringlet_all_reduce(w->group, RINGLET_SUM, &complex, &complex, NULL));
  CHECK(pairs[0] == w->size && pairs[1] == 2 * w->size);
  CHECK(pairs[2] == w->size * (w->size - 1) / 2 && pairs[3] == 0 && pairs[5] == -pairs[2]);
}

/* Calls the collectives that scatter and gather parts, first of even sizes, then of counts[r] = r + 1 rows. */
void test_parts(const world* w) {
  const int64_t n = w->size, part = 4, whole = 4 * n;
  float in[4 * kMaxRanks], out[4 * kMaxRanks];
  const ringlet_tensor all_in = floats(in, &whole), all_out = floats(out, &whole), part_in = floats(in, &part),
                       part_out = floats(out, &part);
  ringlet_work* work = NULL;

  fill(in, whole, w->rank);
  CHECK_OK(ringlet_reduce_scatter(w->group, RINGLET_SUM, &all_in, &part_out, NULL));
  CHECK(out[1] == sum_at(w, w->rank * part + 1));
  CHECK_OK(ringlet_reduce_scatter_async(w->group, RINGLET_MAX, &all_in, &part_out, NULL, &work));
  finish(work);
  CHECK(out[1] == (float)((n - 1) * 100 + w->rank * part + 1));
  CHECK_OK(ringlet_reduce_scatter(w->group, RINGLET_PROD, &all_in, &part_out, NULL));
  CHECK(out[1] == product_at(w, w->rank * part + 1));
  CHECK_OK(ringlet_reduce_scatter_async(w->group, RINGLET_PROD, &all_in, &part_out, NULL, &work));
  finish(work);
  CHECK(out[2] == product_at(w, w->rank * part + 2));
  CHECK_OK(ringlet_mean_scatter(w->group, &all_in, &part_out, NULL));
  CHECK(out[1] == sum_at(w, w->rank * part + 1) / (float)n);
  CHECK_OK(ringlet_mean_scatter_async(w->group, &all_in, &part_out, NULL, &work));
  finish(work);
  CHECK(out[3] == sum_at(w, w->rank * part + 3) / (float)n);
  CHECK_OK(ringlet_all_gather(w->group, &part_in, &all_out, NULL));
  CHECK(out[part + 2] == 102);
  CHECK_OK(ringlet_all_gather_async(w->group, &part_in, &all_out, NULL, &work));
  finish(work);
  CHECK(out[part + 3] == 103);
  CHECK_OK(ringlet_gather(w->group, &part_in, w->rank == 2 ? &all_out : NULL, 2, NULL));
  if (w->rank == 2) CHECK(out[part + 1] == 101);
  CHECK_OK(ringlet_gather_async(w->group, &part_in, w->rank == 0 ? &all_out : NULL, 0, NULL, &work));
  finish(work);
  CHECK_OK(ringlet_scatter(w->group, w->rank == 1 ? &all_in : NULL, &part_out, 1, NULL));
  CHECK(out[0] == (float)(100 + w->rank * part));
  CHECK_OK(ringlet_scatter_async(w->group, w->rank == 0 ? &all_in : NULL, &part_out, 0, NULL, &work));
  finish(work);
  CHECK(out[0] == (float)(w->rank * part));
  CHECK_OK(ringlet_all_to_all(w->group, &all_in, &all_out, NULL));
  CHECK(out[2 * part] == (float)(200 + w->rank * part));
  CHECK_OK(ringlet_all_to_all_async(w->group, &all_in, &all_out, NULL, &work));
  finish(work);
  CHECK(out[part] == (float)(100 + w->rank * part));
}

void test_uneven_parts(const world* w) {
  int64_t counts[kMaxRanks], ones[kMaxRanks], whole = 0, before = 0;
  for (int32_t r = 0; r < w->size; ++r) {
    counts[r] = r + 1;
    ones[r] = 1;
    if (r < w->rank) before += counts[r];
    whole += counts[r];
  }
  const int64_t own = counts[w->rank], size = w->size;
  float in[64], out[64];
  const ringlet_tensor all_in = floats(in, &whole), all_out = floats(out, &whole), own_in = floats(in, &own), own_out = floats(out, &own);
  const ringlet_tensor row_in = floats(in, &size), row_out = floats(out, &size);
  ringlet_work* work = NULL;

  fill(in, whole, w->rank);
  CHECK_OK(ringlet_reduce_scatter_v(w->group, RINGLET_SUM, &all_in, &own_out, counts, NULL));
  CHECK(out[own - 1] == sum_at(w, before + own - 1));
  CHECK_OK(ringlet_reduce_scatter_v_async(w->group, RINGLET_MIN, &all_in, &own_out, counts, NULL, &work));
  finish(work);
  CHECK(out[own - 1] == (float)(before + own - 1));
  CHECK_OK(ringlet_reduce_scatter_v(w->group, RINGLET_PROD, &all_in, &own_out, counts, NULL));
  CHECK(out[own - 1] == product_at(w, before + own - 1));
  CHECK_OK(ringlet_reduce_scatter_v_async(w->group, RINGLET_PROD, &all_in, &own_out, counts, NULL, &work));
  finish(work);
  CHECK(out[0] == product_at(w, before));
  CHECK_OK(ringlet_mean_scatter_v(w->group, &all_in, &own_out, counts, NULL));
  CHECK(out[own - 1] == sum_at(w, before + own - 1) / (float)size);
  CHECK_OK(ringlet_mean_scatter_v_async(w->group, &all_in, &own_out, counts, NULL, &work));
  finish(work);
  CHECK(out[0] == sum_at(w, before) / (float)size);
  CHECK_OK(ringlet_all_gather_v(w->group, &own_in, &all_out, counts, NULL));
  CHECK(out[2] == 101);
  CHECK_OK(ringlet_all_gather_v_async(w->group, &own_in, &all_out, counts, NULL, &work));
  finish(work);
  CHECK(out[3] == 200);
  CHECK_OK(ringlet_gather_v(w->group, &own_in, w->rank == 0 ? &all_out : NULL, counts, 0, NULL));
  CHECK_OK(ringlet_gather_v_async(w->group, &own_in, w->rank == 1 ? &all_out : NULL, counts, 1, NULL, &work));
  finish(work);
  if (w->rank < 2) CHECK(out[4] == 201);
  CHECK_OK(ringlet_scatter_v(w->group, w->rank == 0 ? &all_in : NULL, &own_out, counts, 0, NULL));
  CHECK(out[0] == (float)before);
  CHECK_OK(ringlet_scatter_v_async(w->group, w->rank == 2 ? &all_in : NULL, &own_out, counts, 2, NULL, &work));
  finish(work);
  CHECK(out[0] == (float)(200 + before));
  CHECK_OK(ringlet_all_to_all_v(w->group, &row_in, &row_out, ones, ones, NULL));
  CHECK(out[1] == (float)(100 + w->rank));
  CHECK_OK(ringlet_all_to_all_v_async(w->group, &row_in, &row_out, ones, ones, NULL, &work));
  finish(work);
  CHECK(out[2] == (float)(200 + w->rank));
}

void test_messages(const world* w) {
  const int64_t shape[2] = {2, 3}, transposed[2] = {1, 2};
  const int32_t next = (w->rank + 1) % w->size, previous = (w->rank + w->size - 1) % w->size;
  float sent[6], received[6];
  const ringlet_tensor out = {sent, RINGLET_F32, 2, shape, NULL}, in = {received, RINGLET_F32, 2, shape, transposed};
  ringlet_work* sending = NULL;
  ringlet_work* receiving = NULL;

  fill(sent, 6, w->rank);
  CHECK_OK(ringlet_send_async(w->group, &out, next, NULL, &sending));
  CHECK_OK(ringlet_recv(w->group, &in, previous, NULL));
  finish(sending);
  CHECK(received[1] == (float)(previous * 100 + 3)); /* the receiving tensor is stored column by column */
  CHECK_OK(ringlet_recv_async(w->group, &in, previous, NULL, &receiving));
  CHECK_OK(ringlet_send(w->group, &out, next, NULL));
  finish(receiving);

  if (w->rank == 0) {
    int32_t i, source = -1, sum = 0;
    for (i = 1; i < w->size; ++i) {
      if (i == 1) CHECK_OK(ringlet_recv_any(w->group, &in, &source, NULL));
      if (i > 1) CHECK_OK(ringlet_recv_any_async(w->group, &in, &source, NULL, &receiving));
      if (i > 1) finish(receiving);
      CHECK(received[1] == (float)(source * 100 + 3));
      sum += source;
    }
    CHECK(sum == w->size * (w->size - 1) / 2);
    CHECK_CODE(ringlet_recv_any(w->group, &in, NULL, NULL), RINGLET_INVALID_ARGUMENT);
    CHECK_MESSAGE("source is NULL");
  } else {
    CHECK_OK(ringlet_send(w->group, &out, 0, NULL));
  }

  /* A different shape is an error on both ranks, and the group stays usable. */
  const int64_t three = 3;
  const ringlet_tensor less = floats(received, &three);
  if (w->rank == 0) CHECK_CODE(ringlet_send(w->group, &out, 1, NULL), RINGLET_MISMATCH);
  if (w->rank == 1) {
    CHECK_CODE(ringlet_recv(w->group, &less, 0, NULL), RINGLET_MISMATCH);
    CHECK_MESSAGE("(2, 3)");
  }
}
