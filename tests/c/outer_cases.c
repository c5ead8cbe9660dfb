/* Tests of training with few averages. */

#include <math.h>

#include "check.h"
#include "model.h"

enum { kInnerSteps = 4, kOuterSteps = 12 };

/* What one rank trains. Its inner steps take rank + 1 seconds by a clock of its own. */
typedef struct {
  model m;
  double seconds;
  uint64_t next, taken;
  int32_t returns;
} outer_trainee;

static double read_clock(void* context) { return ((const outer_trainee*)context)->seconds; }

static double falling_rate(void* context, uint64_t averages) {
  CHECK(context != NULL);
  return 1 - 0.25 * (double)averages;
}

/* Each parameter grows by half of rank + 1, for which rank + 1 samples are used. */
static int32_t grow(void* context, const ringlet_inner_step* step, double* samples) {
  outer_trainee* t = context;
  CHECK(step->number >= t->next && step->number < kOuterSteps && step->rank < step->ranks && *samples == 0);
  t->next = step->number + 1;
  ++t->taken;
  t->seconds += step->rank + 1;
  for (int i = 0; i < kElements; ++i) t->m.weight[i] += 0.5F * (float)(step->rank + 1);
  for (int i = 0; i < 3; ++i) t->m.bias[i] += 0.5F * (float)(step->rank + 1);
  *samples = step->rank + 1;
  return t->returns;
}

static int32_t use_no_samples(void* context, const ringlet_inner_step* step, double* samples) {
  (void)context;
  (void)step;
  (void)samples;
  return 0;
}

/* How many inner steps a rank takes before an average: with by_speed, after the first one, as many as the time of the fastest allows. */
static int steps_before(int rank, int average) { return average == 0 ? kInnerSteps : (int)lround(kInnerSteps / (rank + 1.0)); }

/* By how much the parameters have grown after kOuterSteps, by the method in f64. */
static double growth(int32_t ranks) {
  double grown = 0, momentum = 0;
  for (int average = 0; average < kOuterSteps / kInnerSteps; ++average) {
    double total = 0, gradient = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const double samples = steps_before(rank, average) * (rank + 1.0);
      total += samples;
      gradient -= samples * samples / 2;
    }
    gradient /= total;
    momentum = 0.9 * momentum + gradient;
    grown -= falling_rate(&grown, (uint64_t)average) * (gradient + 0.9 * momentum);
  }
  return grown;
}

static void check_result(const world* w, outer_trainee* t, ringlet_outer_trainer* trainer, double tolerance) {
  static const int64_t kBiases[1] = {3};
  const ringlet_named_tensor* shared = NULL;
  size_t count = 0;
  float least[3], most[3];
  const ringlet_tensor own = floats(t->m.bias, kBiases), lowest = floats(least, kBiases), highest = floats(most, kBiases);
  CHECK_OK(ringlet_outer_trainer_shared_parameters(trainer, &shared, &count));
  CHECK(count == 2 && strcmp(shared[0].name, "layer.weight") == 0 && shared[0].tensor.shape[1] == kColumns);
  CHECK(shared[0].tensor.data != t->m.weight && memcmp(shared[0].tensor.data, t->m.weight, sizeof t->m.weight) == 0);
  CHECK(memcmp(shared[1].tensor.data, t->m.bias, sizeof t->m.bias) == 0);
  CHECK_OK(ringlet_all_reduce(w->group, RINGLET_MIN, &own, &lowest, NULL));
  CHECK_OK(ringlet_all_reduce(w->group, RINGLET_MAX, &own, &highest, NULL));
  CHECK(memcmp(least, most, sizeof least) == 0);
  CHECK(fabs(t->m.bias[2] - 10 - growth(w->size)) < tolerance && fabs(t->m.weight[3] - 3 - growth(w->size)) < tolerance);
}

static void train_with_wire(const world* w, int32_t wire, double tolerance) {
  outer_trainee t;
  ringlet_average_options average;
  ringlet_elastic_options elastic;
  ringlet_outer_options options;
  ringlet_outer_trainer* trainer = NULL;
  ringlet_checkpoint* state = NULL;
  ringlet_group* group = NULL;
  uint64_t number = 0;
  int64_t value = 0;
  int32_t size = 0;
  memset(&t, 0, sizeof t);
  make_model(&t.m, w);
  CHECK_OK(ringlet_average_options_init(&average, sizeof average));
  CHECK_OK(ringlet_elastic_options_init(&elastic, sizeof elastic));
  CHECK_OK(ringlet_outer_options_init(&options, sizeof options));
  CHECK(options.inner_steps == 50 && options.fragments == 1 && options.overlap == 0 && options.by_speed == 0 && options.mixing == 0.5);
  CHECK(options.learning_rate == 0.7 && options.momentum == 0.9 && options.nesterov == 1);
  average.communication_type = wire;
  average.least_elements = 0;
  elastic.average = &average;
  options.elastic = &elastic;
  options.inner_steps = kInnerSteps;
  options.by_speed = 1;
  options.context = &t;
  options.clock = read_clock;
  options.schedule = falling_rate;
  CHECK_OK(ringlet_outer_trainer_create(w->group, t.m.parameters, 2, &options, &trainer));
  CHECK_OK(ringlet_outer_trainer_state(trainer, &state));
  CHECK_OK(ringlet_checkpoint_set_int(state, "seed", 7));
  CHECK_OK(ringlet_outer_trainer_run(trainer, kOuterSteps, grow, &t));
  CHECK(t.taken == (uint64_t)(kInnerSteps + 2 * steps_before(w->rank, 1)));
  check_result(w, &t, trainer, tolerance);
  CHECK_OK(ringlet_outer_trainer_steps(trainer, &number));
  CHECK(number == kOuterSteps);
  CHECK_OK(ringlet_outer_trainer_averages(trainer, &number));
  CHECK(number == kOuterSteps / kInnerSteps);
  CHECK_OK(ringlet_outer_trainer_group(trainer, &group));
  CHECK_OK(ringlet_group_size(group, &size));
  CHECK(size == w->size);
  ringlet_group_free(group);
  ringlet_outer_trainer_free(trainer);
  /* The handle keeps alive what it needs. */
  CHECK_OK(ringlet_checkpoint_get_int(state, "seed", &value));
  CHECK(value == 7);
  ringlet_checkpoint_free(state);
}

static void check_outer_mistakes(const world* w) {
  outer_trainee t;
  ringlet_group* alone = NULL;
  ringlet_outer_options options;
  ringlet_outer_trainer* trainer = NULL;
  const ringlet_named_tensor* tensors = NULL;
  size_t count = 0;
  memset(&t, 0, sizeof t);
  make_model(&t.m, w);
  CHECK_OK(ringlet_group_of_one(&alone));
  CHECK_OK(ringlet_outer_options_init(&options, sizeof options));
  options.inner_steps = kInnerSteps;
  options.fragments = 3;
  CHECK_CODE(ringlet_outer_trainer_create(alone, t.m.parameters, 2, &options, &trainer), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("fragments is 3");
  CHECK(trainer == NULL);
  options.fragments = 2;
  CHECK_OK(ringlet_outer_trainer_create(alone, t.m.parameters, 2, &options, &trainer));
  CHECK_OK(ringlet_outer_trainer_fragment(trainer, 1, &tensors, &count));
  CHECK(count == 1 && strcmp(tensors[0].name, "layer.bias") == 0 && tensors[0].tensor.data == t.m.bias);
  CHECK_CODE(ringlet_outer_trainer_fragment(trainer, 2, &tensors, &count), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("there is no fragment 2");
  CHECK_CODE(ringlet_outer_trainer_run(trainer, 3, grow, &t), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("3 inner steps are no multiple");
  CHECK_CODE(ringlet_outer_trainer_run(trainer, 2, NULL, &t), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("inner is NULL");
  t.returns = 9;
  CHECK_CODE(ringlet_outer_trainer_run(trainer, 2, grow, &t), RINGLET_CALLBACK_FAILED);
  CHECK_MESSAGE("the function of an inner step returned 9");
  ringlet_outer_trainer_free(trainer);
  trainer = NULL;
  CHECK_OK(ringlet_outer_trainer_create(alone, t.m.parameters, 2, &options, &trainer));
  CHECK_CODE(ringlet_outer_trainer_run(trainer, 2, use_no_samples, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("no rank has used a sample");
  ringlet_outer_trainer_free(trainer);
  ringlet_group_free(alone);
}

void test_outer(const world* w) {
  train_with_wire(w, RINGLET_NO_DTYPE, 1e-4);
  train_with_wire(w, RINGLET_WIRE_INT8, 0.2);
  check_outer_mistakes(w);
}
