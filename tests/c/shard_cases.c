/* Tests of FSDP, parameters in shards, parts of weights, and checkpoints. */

#include <math.h>

#include "check.h"
#include "model.h"

/* Takes a step of gradient descent at the rate 1, and counts the rows that it is given. */
static int32_t descend(void* context, const ringlet_named_tensor* gradients, size_t gradient_count, const ringlet_named_tensor* parameters,
                       size_t parameter_count) {
  if (gradient_count != parameter_count) return 1;
  for (size_t i = 0; i < gradient_count; ++i) {
    int64_t elements = 1;
    for (int32_t axis = 0; axis < gradients[i].tensor.axes; ++axis) elements *= gradients[i].tensor.shape[axis];
    for (int64_t e = 0; e < elements; ++e) ((float*)parameters[i].tensor.data)[e] -= ((const float*)gradients[i].tensor.data)[e];
    *(int64_t*)context += gradients[i].tensor.shape[0];
  }
  return 0;
}

static int32_t fail(void* context, const ringlet_named_tensor* gradients, size_t gradient_count, const ringlet_named_tensor* parameters,
                    size_t parameter_count) {
  (void)gradients, (void)gradient_count, (void)parameters, (void)parameter_count;
  return ringlet_optimizer_step(NULL, context) == RINGLET_INVALID_ARGUMENT ? 9 : 0;
}

void test_fsdp(const world* w) {
  model m;
  double norm = 0;
  ringlet_optimizer* optimizer = NULL;
  CHECK_OK(ringlet_sgd_create(1, NULL, &optimizer));
  make_model(&m, w);
  CHECK_OK(ringlet_fsdp_apply_gradients(w->group, m.gradients, 2, m.parameters, 2, optimizer, NULL, &norm));
  CHECK(norm == -1);
  for (int i = 0; i < kElements; ++i) CHECK(m.weight[i] == (float)i - mean(w, (float)i));
  CHECK(m.bias[2] == 10 - mean(w, 1));

  int64_t rows = 0, begin = -1, end = -1;
  ringlet_fsdp_updater* updater = NULL;
  ringlet_shard_layout* layout = NULL;
  ringlet_fsdp_options options;
  const double max_norm = 1e9;
  CHECK_OK(ringlet_fsdp_options_init(&options, sizeof options));
  options.max_norm = &max_norm;
  CHECK_OK(ringlet_fsdp_updater_create(w->group, &options, &updater));
  CHECK_CODE(ringlet_fsdp_updater_layout(updater, &layout), RINGLET_INVALID_ARGUMENT);
  make_model(&m, w);
  CHECK_OK(ringlet_fsdp_updater_apply_gradients_with(updater, m.gradients, 2, m.parameters, 2, descend, &rows, &norm));
  CHECK(m.bias[1] == 10 - mean(w, 1));
  double squares = 3 * mean(w, 1) * mean(w, 1);
  for (int i = 0; i < kElements; ++i) squares += mean(w, (float)i) * mean(w, (float)i);
  CHECK(near(norm, sqrt(squares)));
  CHECK_OK(ringlet_fsdp_updater_layout(updater, &layout));
  CHECK_OK(ringlet_shard_layout_rows(layout, "layer.weight", w->rank, &begin, &end));
  int64_t bias_begin = -1, bias_end = -1;
  CHECK_OK(ringlet_shard_layout_rows(layout, "layer.bias", w->rank, &bias_begin, &bias_end));
  CHECK(rows == end - begin + bias_end - bias_begin);
  CHECK_CODE(ringlet_shard_layout_rows(layout, "layer.weight", w->size, &begin, &end), RINGLET_INVALID_ARGUMENT);
  ringlet_shard_layout_free(layout);
  CHECK_OK(ringlet_fsdp_updater_apply_gradients(updater, m.gradients, 2, m.parameters, 2, optimizer, NULL));
  ringlet_fsdp_updater_free(updater);

  /* In blocks, whose steps here are 1/8 or 4 at most. What is left for the next step only an updater can keep. */
  CHECK(options.feedback == 0 && options.least_elements == 16384);
  options.least_elements = 0;
  options.max_norm = NULL;
  for (options.reduce_dtype = RINGLET_WIRE_INT8; options.reduce_dtype <= RINGLET_WIRE_INT4; ++options.reduce_dtype) {
    const float step = options.reduce_dtype == RINGLET_WIRE_INT8 ? 0.125F : 4;
    for (options.feedback = 0; options.feedback < 2; ++options.feedback) {
      CHECK_OK(ringlet_fsdp_updater_create(w->group, &options, &updater));
      make_model(&m, w);
      CHECK_OK(ringlet_fsdp_updater_apply_gradients(updater, m.gradients, 2, m.parameters, 2, optimizer, NULL));
      for (int i = 0; i < kElements; ++i) CHECK(fabsf(m.weight[i] - (float)i + mean(w, (float)i)) <= step);
      ringlet_fsdp_updater_free(updater);
    }
  }
  options.reduce_dtype = RINGLET_WIRE_INT8;
  CHECK_CODE(ringlet_fsdp_apply_gradients(w->group, m.gradients, 2, m.parameters, 2, optimizer, &options, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("error feedback needs an FsdpUpdater");
  options.least_elements = -1;
  CHECK_CODE(ringlet_fsdp_updater_create(w->group, &options, &updater), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("least_elements is -1");

  CHECK_CODE(ringlet_fsdp_apply_gradients_with(w->group, m.gradients, 2, m.parameters, 2, fail, NULL, NULL, NULL), RINGLET_CALLBACK_FAILED);
  CHECK_MESSAGE("apply returned 9; its last call said: ringlet_optimizer_step: optimizer is NULL");
  CHECK_CODE(ringlet_fsdp_apply_gradients_with(w->group, m.gradients, 2, m.parameters, 2, NULL, NULL, NULL, NULL),
             RINGLET_INVALID_ARGUMENT);
  ringlet_optimizer_free(optimizer);

  /* Each rank cuts its own column out of a matrix of three rows. */
  const int64_t square[2] = {3, w->size}, column[2] = {3, 1};
  float full[3 * 8], part[3] = {0};
  for (int64_t i = 0; i < 3 * w->size; ++i) full[i] = (float)i;
  const ringlet_tensor input = {full, RINGLET_F32, 2, square, NULL}, output = {part, RINGLET_F32, 2, column, NULL};
  CHECK_OK(ringlet_shard_axis(w->group, &input, 1, NULL, 0, &output));
  CHECK(part[2] == (float)(2 * w->size + w->rank));
  CHECK_CODE(ringlet_shard_axis(w->group, &input, 2, NULL, 0, &output), RINGLET_INVALID_ARGUMENT);

  make_model(&m, w);
  for (int i = 0; i < 3; ++i) m.bias_gradient[i] = 2;
  CHECK_OK(ringlet_clip_grad_norm_sharded(w->group, &m.gradients[1], 1, 1, 0, &norm));
  CHECK(near(norm, 2 * sqrt(3.0 * w->size)));
}

void test_fully_shard(const world* w) {
  model m;
  ringlet_fully_shard* sharded = NULL;
  ringlet_unsharded* unsharded = NULL;
  ringlet_shard_layout* layout = NULL;
  ringlet_optimizer* optimizer = NULL;
  const ringlet_named_tensor *parameters = NULL, *gradients = NULL;
  size_t module = 9, count = 0, gradient_count = 0;
  ringlet_fully_shard_options options;
  CHECK_OK(ringlet_fully_shard_options_init(&options, sizeof options));
  make_model(&m, w);
  CHECK_OK(ringlet_fully_shard_create(w->group, &options, &sharded));
  CHECK_OK(ringlet_fully_shard_add(sharded, "first", m.parameters, 2, &module));
  CHECK(module == 0);
  CHECK_OK(ringlet_fully_shard_forward(sharded, 0, &unsharded, &parameters, &count));
  CHECK(count == 2 && strcmp(parameters[0].name, "layer.weight") == 0 && parameters[0].tensor.shape[0] == kRows);
  CHECK(memcmp(parameters[0].tensor.data, m.weight, sizeof m.weight) == 0);
  ringlet_unsharded_release(unsharded);
  CHECK_OK(ringlet_fully_shard_backward(sharded, 0, &unsharded, &parameters, &count));
  ringlet_unsharded_release(unsharded);
  CHECK_OK(ringlet_fully_shard_reduce_gradients(sharded, 0, m.gradients, 2));
  CHECK_OK(ringlet_fully_shard_finish(sharded));
  CHECK_OK(ringlet_fully_shard_parameters(sharded, &parameters, &count));
  CHECK_OK(ringlet_fully_shard_gradients(sharded, &gradients, &gradient_count));
  CHECK(count == 2 && gradient_count == 2 && strcmp(gradients[0].name, "first.layer.weight") == 0);
  CHECK_OK(ringlet_sgd_create(1, NULL, &optimizer));
  CHECK_OK(ringlet_optimizer_apply_gradients(optimizer, gradients, gradient_count, parameters, count));
  ringlet_optimizer_free(optimizer);
  CHECK_OK(ringlet_fully_shard_layout(sharded, &layout));
  int64_t begin = -1, end = -1;
  CHECK_OK(ringlet_shard_layout_rows(layout, "first.layer.weight", w->rank, &begin, &end));
  CHECK(parameters[0].tensor.shape[0] == end - begin);
  ringlet_shard_layout_free(layout);
  CHECK_OK(ringlet_fully_shard_forward(sharded, 0, &unsharded, &parameters, &count));
  for (int i = 0; i < kElements; ++i) CHECK(((const float*)parameters[0].tensor.data)[i] == (float)i - mean(w, (float)i));
  ringlet_unsharded_release(unsharded);
  CHECK_CODE(ringlet_fully_shard_forward(sharded, 1, &unsharded, &parameters, &count), RINGLET_INVALID_ARGUMENT);
  CHECK(unsharded == NULL);
  ringlet_fully_shard_free(sharded);

  options.reduce_dtype = RINGLET_WIRE_INT8;
  options.feedback = 1;
  options.least_elements = 0;
  CHECK_OK(ringlet_fully_shard_create(w->group, &options, &sharded));
  CHECK_OK(ringlet_fully_shard_add(sharded, "first", m.parameters, 2, NULL));
  CHECK_OK(ringlet_fully_shard_reduce_gradients(sharded, 0, m.gradients, 2));
  CHECK_OK(ringlet_fully_shard_finish(sharded));
  CHECK_OK(ringlet_fully_shard_gradients(sharded, &gradients, &gradient_count));
  for (int64_t i = 0; i < 2 * gradients[0].tensor.shape[0]; ++i)
    CHECK(fabsf(((const float*)gradients[0].tensor.data)[i] - mean(w, (float)(2 * begin + i))) <= 0.125F);
  ringlet_fully_shard_free(sharded);
}

void test_checkpoints(const world* w, const char* directory) {
  model m;
  ringlet_checkpoint* checkpoint = NULL;
  ringlet_shard_layout* layout = NULL;
  const char* text = NULL;
  int32_t found = 1;
  int64_t number = 0;
  uint64_t step = 0;
  double real = 0;
  make_model(&m, w);

  /* The weight is saved as shards of an even layout, the bias as a whole. */
  int64_t begin = 0, end = 0;
  CHECK_OK(ringlet_shard_layout_create(m.parameters, 2, w->size, NULL, 0, &layout));
  CHECK_OK(ringlet_shard_layout_rows(layout, "layer.weight", w->rank, &begin, &end));
  const int64_t shard_shape[2] = {end - begin, kColumns};
  const ringlet_named_tensor shard = {"layer.weight", {m.weight + begin * kColumns, RINGLET_F32, 2, shard_shape, NULL}};
  const ringlet_named_tensor slot = {"layer.weight.m", {m.weight_gradient + begin * kColumns, RINGLET_F32, 2, shard_shape, NULL}};
  for (int i = 0; i < kElements; ++i) m.weight_gradient[i] = (float)(100 + i);
  CHECK_OK(ringlet_checkpoint_create(&checkpoint));
  CHECK_OK(ringlet_checkpoint_add(checkpoint, "whole", &m.parameters[1], 1));
  CHECK_OK(ringlet_checkpoint_add_sharded(checkpoint, "sharded", &shard, 1, layout));
  CHECK_OK(ringlet_checkpoint_add_slots(checkpoint, "optimizer", &slot, 1, layout));
  CHECK_OK(ringlet_checkpoint_load(checkpoint, w->group, directory, NULL, NULL, &found, &step));
  CHECK(found == 0);
  CHECK_OK(ringlet_checkpoint_set_int(checkpoint, "seed", -3));
  CHECK_OK(ringlet_checkpoint_set_double(checkpoint, "rate", 0.5));
  CHECK_OK(ringlet_checkpoint_set_text(checkpoint, "data", "corpus"));
  CHECK_OK(ringlet_checkpoint_save(checkpoint, w->group, directory, 12, 2, NULL));

  memset(m.weight, 0, sizeof m.weight);
  memset(m.bias, 0, sizeof m.bias);
  CHECK_OK(ringlet_checkpoint_set_int(checkpoint, "seed", 0));
  CHECK_OK(ringlet_checkpoint_load(checkpoint, w->group, directory, NULL, NULL, &found, &step));
  CHECK(found == 1 && step == 12 && m.bias[1] == 10 && m.weight[begin * kColumns] == (float)(begin * kColumns));
  CHECK_OK(ringlet_checkpoint_get_int(checkpoint, "seed", &number));
  CHECK_OK(ringlet_checkpoint_get_double(checkpoint, "rate", &real));
  CHECK_OK(ringlet_checkpoint_get_text(checkpoint, "data", &text));
  CHECK(number == -3 && real == 0.5 && strcmp(text, "corpus") == 0);
  CHECK_CODE(ringlet_checkpoint_get_int(checkpoint, "rate", &number), RINGLET_INVALID_ARGUMENT);

  step = 99;
  CHECK_CODE(ringlet_checkpoint_load(checkpoint, w->group, directory, &step, NULL, &found, &step), RINGLET_IO_ERROR);
  CHECK_OK(ringlet_barrier(w->group, NULL));
  ringlet_checkpoint_free(checkpoint);
  ringlet_shard_layout_free(layout);
}
