/* Tests of the training loop whose ranks come and go. */

#include <pthread.h>
#include <time.h>

#include "cases.h"
#include "check.h"

enum { kFewSteps = 10, kSteps = 2050, kBatch = 12, kStepOfRevocation = 5, kLastStepOfNewcomer = 2000 };

/* What one rank trains, and what it was told. */
typedef struct {
  float weight, gradient;
  ringlet_named_tensor parameter, slope;
  ringlet_checkpoint* state; /* the trainer's */
  int is_newcomer, revokes, losses, joins, states, worlds;
} trainee;

static const int64_t kOne[1] = {1};

static void prepare(trainee* t, ringlet_checkpoint** contents) {
  memset(t, 0, sizeof *t);
  t->parameter.name = "weight";
  t->parameter.tensor = floats(&t->weight, kOne);
  t->slope.name = "weight";
  t->slope.tensor = floats(&t->gradient, kOne);
  CHECK_OK(ringlet_checkpoint_create(contents));
  CHECK_OK(ringlet_checkpoint_add(*contents, "model", &t->parameter, 1));
  CHECK_OK(ringlet_checkpoint_set_int(*contents, "applied", 0));
}

/* The weight after so many steps: in each the mean over the batch is added. */
static float weight_after(uint64_t steps) {
  float sum = 0;
  uint64_t step;
  for (step = 0; step < steps; ++step) sum += (float)step + (kBatch - 1) / 2.0F;
  return sum;
}

static int32_t apply(void* context) {
  trainee* t = context;
  int64_t applied = 0;
  t->weight += t->gradient;
  CHECK_OK(ringlet_checkpoint_get_int(t->state, "applied", &applied));
  CHECK_OK(ringlet_checkpoint_set_int(t->state, "applied", applied + 1));
  return 0;
}

static int32_t fail_to_apply(void* context) {
  (void)context;
  return 9;
}

static int32_t take_step(void* context, ringlet_step* step) {
  trainee* t = context;
  uint64_t number = 0, first = 0, count = 0, i;
  int32_t code;
  CHECK_OK(ringlet_step_samples(step, &number, &first, &count));
  CHECK_OK(ringlet_step_samples(step, NULL, NULL, NULL));
  t->gradient = 0;
  for (i = first; i < first + count; ++i) t->gradient += ((float)number + (float)i) / (float)count;
  if (t->is_newcomer && number == kLastStepOfNewcomer) return -7;
  if (t->revokes && number == kStepOfRevocation) {
    ringlet_group* group = NULL;
    t->revokes = 0;
    CHECK_OK(ringlet_step_group(step, &group));
    CHECK_OK(ringlet_group_revoke(group));
    ringlet_group_free(group);
  }
  if (number % 2 == 0) {
    code = ringlet_step_average_gradients(step, &t->slope, 1);
    if (code != RINGLET_OK) return code;
  } else {
    code = ringlet_step_add(step, &t->slope.tensor);
    if (code != RINGLET_OK) return code;
    CHECK_CODE(ringlet_step_commit(step, apply, t), RINGLET_INVALID_ARGUMENT);
    CHECK_MESSAGE("before the added gradients hold their averages");
    code = ringlet_step_average(step);
    if (code != RINGLET_OK) return code;
  }
  return ringlet_step_commit(step, apply, t);
}

static void note_change(void* context, const ringlet_membership_change* change) {
  trainee* t = context;
  int32_t size = 0;
  CHECK_OK(ringlet_group_size(change->world, &size));
  CHECK(size > 0 && change->pause_ns >= 0);
  if (change->joined > 0) {
    CHECK(change->joined == 1 && change->lost_count == 0 && change->cause == RINGLET_OK);
    ++t->joins;
  } else if (change->lost_count > 0) {
    CHECK(change->lost_count == 1 && change->cause == RINGLET_PEER_LOST && change->cause_rank == change->lost[0]);
    CHECK(strstr(change->cause_message, "rank 3") != NULL);
    ++t->losses;
  } else {
    CHECK(change->cause == RINGLET_CANCELLED);
  }
}

static void note_state(void* context, const ringlet_checkpoint* state, uint64_t step) {
  trainee* t = context;
  int64_t applied = -1;
  CHECK_OK(ringlet_checkpoint_get_int(state, "applied", &applied));
  CHECK((uint64_t)applied == step && t->weight == weight_after(step));
  ++t->states;
}

/* Each rank brings a number, and gets them all. */
static int32_t count_ranks(ringlet_group* world) {
  int32_t size = 0;
  int32_t code;
  float count = 1;
  ringlet_tensor counted = floats(&count, kOne);
  CHECK_OK(ringlet_group_size(world, &size));
  code = ringlet_all_reduce(world, RINGLET_SUM, &counted, &counted, NULL);
  if (code == RINGLET_OK) CHECK(count == (float)size);
  return code;
}

static int32_t note_world(void* context, ringlet_group* world) {
  const int32_t code = count_ranks(world);
  if (code == RINGLET_OK) ++((trainee*)context)->worlds;
  return code;
}

static ringlet_elastic_trainer* make_trainer(trainee* t, ringlet_group* group) {
  ringlet_checkpoint* contents = NULL;
  ringlet_elastic_options options;
  ringlet_elastic_trainer* trainer = NULL;
  prepare(t, &contents);
  CHECK_OK(ringlet_elastic_options_init(&options, sizeof options));
  CHECK(options.min_ranks == -1 && options.min_wait_ms == -1 && options.rejoin == 1 && options.keep == 2);
  options.context = t;
  options.on_change = note_change;
  options.on_state = note_state;
  options.on_world = note_world;
  options.keep = 0;
  CHECK_CODE(ringlet_elastic_trainer_create(group, contents, &options, &trainer), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("keep is 0");
  CHECK(trainer == NULL);
  options.keep = 2;
  CHECK_OK(ringlet_elastic_trainer_create(group, contents, &options, &trainer));
  ringlet_checkpoint_free(contents);
  CHECK_OK(ringlet_elastic_trainer_state(trainer, &t->state));
  return trainer;
}

/* A process of its own to the group, which trains with it for a while. */
static void* join_training(void* door) {
  trainee t;
  ringlet_init_options options;
  ringlet_group* group = NULL;
  ringlet_elastic_trainer* trainer;
  CHECK_OK(ringlet_init_options_init(&options, sizeof options));
  options.join = door;
  CHECK_OK(ringlet_init(&options, &group));
  CHECK_OK(count_ranks(group));
  trainer = make_trainer(&t, group);
  t.is_newcomer = 1;
  CHECK_CODE(ringlet_elastic_trainer_run(trainer, kSteps, kBatch, take_step, &t), RINGLET_CALLBACK_FAILED);
  CHECK_MESSAGE("the step function returned -7");
  CHECK(t.states == 1 && t.weight == weight_after(kLastStepOfNewcomer));
  ringlet_elastic_trainer_free(trainer);
  ringlet_checkpoint_free(t.state);
  ringlet_group_free(group);
  return NULL;
}

/* Steps are slow until the newcomer is there, so that it comes before its last one. */
static int32_t take_step_with_newcomer(void* context, ringlet_step* step) {
  const struct timespec pause = {0, 2000000};
  trainee* t = context;
  if (t->joins == 0) CHECK(nanosleep(&pause, NULL) == 0);
  return take_step(t, step);
}

static int32_t take_step_and_fail(void* context, ringlet_step* step) {
  const int32_t code = ringlet_step_commit(step, fail_to_apply, context);
  CHECK(code == RINGLET_CALLBACK_FAILED);
  return code;
}

static void check_mistakes(ringlet_elastic_trainer* trainer, trainee* t) {
  CHECK_CODE(ringlet_elastic_trainer_run(trainer, 1, 0, take_step, t), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("batch is 0");
  CHECK_CODE(ringlet_elastic_trainer_run(trainer, 1, 1, NULL, t), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("step is NULL");
}

void test_trainer(ringlet_group* group) {
  trainee t;
  uint64_t steps = 0;
  int64_t applied = 0;
  ringlet_elastic_trainer* trainer = make_trainer(&t, group);
  check_mistakes(trainer, &t);
  CHECK_OK(ringlet_elastic_trainer_run(trainer, kFewSteps, kBatch, take_step, &t));
  CHECK(strcmp(ringlet_error_message(), "") == 0);
  CHECK_OK(ringlet_elastic_trainer_step(trainer, &steps));
  CHECK(steps == kFewSteps && t.weight == weight_after(kFewSteps));
  ringlet_elastic_trainer_free(trainer);
  /* The handle keeps alive what it needs. */
  CHECK_OK(ringlet_checkpoint_get_int(t.state, "applied", &applied));
  CHECK(applied == kFewSteps);
  ringlet_checkpoint_free(t.state);
}

/* Rank 0 ends an epoch; a newcomer comes and goes. Ends the group. */
void test_elastic_trainer(ringlet_group* group, int32_t rank, int32_t size) {
  trainee t;
  char door[264] = "";
  int32_t size_then = 0;
  pthread_t newcomer;
  ringlet_group* last = NULL;
  ringlet_elastic_trainer* trainer = make_trainer(&t, group);
  t.revokes = rank == 0;
  if (rank == 0) {
    CHECK_OK(ringlet_group_door(group, door, sizeof door));
    CHECK(pthread_create(&newcomer, NULL, join_training, door) == 0);
  }
  CHECK_OK(ringlet_elastic_trainer_run(trainer, kSteps, kBatch, take_step_with_newcomer, &t));
  CHECK(t.weight == weight_after(kSteps) && t.joins == 1 && t.losses == 1 && t.states == 0);
  /* After the revocation, with the newcomer, and without. */
  CHECK(t.worlds == 3);
  if (rank == 0) CHECK(pthread_join(newcomer, NULL) == 0);
  CHECK_OK(ringlet_elastic_trainer_group(trainer, &last));
  CHECK_OK(ringlet_group_size(last, &size_then));
  CHECK(size_then == size);
  CHECK_CODE(ringlet_elastic_trainer_run(trainer, kSteps + 1, kBatch, take_step_and_fail, &t), RINGLET_CALLBACK_FAILED);
  CHECK_MESSAGE("apply returned 9");
  ringlet_group_free(last);
  ringlet_elastic_trainer_free(trainer);
  ringlet_checkpoint_free(t.state);
}
