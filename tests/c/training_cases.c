/* Tests of averages of gradients, and of optimizers. */

#include "check.h"
#include "model.h"

void test_averages(const world* w) {
  model m;
  ringlet_average_options options;
  CHECK_OK(ringlet_average_options_init(&options, sizeof options));

  make_model(&m, w);
  CHECK_OK(ringlet_average_gradients(w->group, m.gradients, 2, NULL));
  CHECK(m.weight_gradient[4] == mean(w, 4) && m.bias_gradient[2] == mean(w, 1));

  /* The weights are 0, 1 and 2: a rank with a larger weight counts for more. */
  const double weight = w->rank;
  make_model(&m, w);
  options.weight = &weight;
  CHECK_OK(ringlet_average_gradients(w->group, m.gradients, 2, &options));
  CHECK(near(m.bias_gradient[0], (2 * w->size - 1) / 3.0 + 1));

  /* In blocks every rank gets the rounded mean; the small ones are sent as bf16 unless all are wanted in blocks. */
  ringlet_average_options blocks;
  CHECK_OK(ringlet_average_options_init(&blocks, sizeof blocks));
  CHECK(blocks.least_elements == 16384 && blocks.feedback == 0);
  for (blocks.communication_type = RINGLET_WIRE_INT8; blocks.communication_type <= RINGLET_WIRE_INT4; ++blocks.communication_type) {
    blocks.least_elements = 0;
    blocks.feedback = 1;
    make_model(&m, w);
    CHECK_OK(ringlet_average_gradients(w->group, m.gradients, 2, &blocks));
    const float error = m.weight_gradient[4] - mean(w, 4);
    CHECK((error < 0 ? -error : error) <= 0.35F * mean(w, 4));
  }
  CHECK_CODE(ringlet_average_gradients(w->group, m.gradients, 2, &blocks), RINGLET_INVALID_ARGUMENT);
  blocks.communication_type = RINGLET_WIRE_INT8;
  blocks.least_elements = -1;
  CHECK_CODE(ringlet_average_gradients(w->group, m.gradients, 2, &blocks), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("least_elements is -1");

  ringlet_averager* averager = NULL;
  CHECK_OK(ringlet_averager_create(w->group, &options, &averager));
  CHECK_OK(ringlet_averager_set_weight(averager, NULL));
  make_model(&m, w);
  CHECK_OK(ringlet_averager_add(averager, &m.gradients[1].tensor));
  CHECK_CODE(ringlet_averager_set_weight(averager, &weight), RINGLET_INVALID_ARGUMENT);
  CHECK_OK(ringlet_averager_add(averager, &m.gradients[0].tensor));
  CHECK_OK(ringlet_averager_finish(averager));
  CHECK(m.weight_gradient[4] == mean(w, 4));
  ringlet_averager_free(averager);

  ringlet_bucketer* bucketer = NULL;
  const ringlet_named_tensor* averaged = NULL;
  size_t count = 0;
  make_model(&m, w);
  CHECK_OK(ringlet_bucketer_create(w->group, m.gradients, 2, NULL, 1, &bucketer));
  CHECK_OK(ringlet_bucketer_ready_name(bucketer, "layer.bias"));
  CHECK_CODE(ringlet_bucketer_ready(bucketer, 1), RINGLET_INVALID_ARGUMENT);
  CHECK_CODE(ringlet_bucketer_ready(bucketer, 2), RINGLET_INVALID_ARGUMENT);
  CHECK_CODE(ringlet_bucketer_set_weight(bucketer, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_OK(ringlet_bucketer_finish(bucketer));
  CHECK_OK(ringlet_bucketer_averaged(bucketer, &averaged, &count));
  CHECK(count == 1 && strcmp(averaged[0].name, "layer.bias") == 0 && averaged[0].tensor.data == m.bias_gradient);
  CHECK(m.bias_gradient[0] == mean(w, 1));
  ringlet_bucketer_free(bucketer);

  /* Trees that differ between ranks are an error, and the group stays usable. */
  m.gradients[0].name = "another.weight";
  if (w->rank == 1) m.gradients[1].name = "layer.other";
  CHECK_CODE(ringlet_average_gradients(w->group, m.gradients, 2, NULL), RINGLET_MISMATCH);
  CHECK_MESSAGE("layer.other");
  CHECK_OK(ringlet_barrier(w->group, NULL));
  m.gradients[1].name = NULL;
  CHECK_CODE(ringlet_average_gradients(w->group, m.gradients, 2, NULL), RINGLET_INVALID_ARGUMENT);
  CHECK_MESSAGE("gradients[1].name is NULL");
}

typedef int32_t (*create_any)(double learning_rate, ringlet_optimizer** optimizer);

#define CREATE_WITH_OPTIONS(kind)                                                             \
  static int32_t create_##kind(double learning_rate, ringlet_optimizer** optimizer) {         \
    ringlet_##kind##_options options;                                                         \
    CHECK_OK(ringlet_##kind##_options_init(&options, sizeof options));                        \
    return ringlet_##kind##_create(learning_rate, &options, optimizer);                       \
  }                                                                                           \
  static int32_t create_default_##kind(double learning_rate, ringlet_optimizer** optimizer) { \
    return ringlet_##kind##_create(learning_rate, NULL, optimizer);                           \
  }
CREATE_WITH_OPTIONS(sgd)
CREATE_WITH_OPTIONS(rmsprop)
CREATE_WITH_OPTIONS(adagrad)
CREATE_WITH_OPTIONS(adadelta)
CREATE_WITH_OPTIONS(adam)
CREATE_WITH_OPTIONS(adamw)
CREATE_WITH_OPTIONS(adamax)
CREATE_WITH_OPTIONS(lion)

void test_optimizers(const world* w) {
  static const struct {
    create_any create, create_default;
    size_t slots;      /* slots of state for each parameter */
    double first_step; /* how far a parameter of 10 with the gradient 1 moves at the rate 0.1 */
  } kinds[] = {{create_sgd, create_default_sgd, 0, 0.1},
               {create_rmsprop, create_default_rmsprop, 1, 1.0},
               {create_adagrad, create_default_adagrad, 1, 0.1},
               {create_adadelta, create_default_adadelta, 2, 0.1 * 0.0031622618},
               {create_adam, create_default_adam, 2, 0.1 * 0.1 / 0.0316227766},
               {create_adamw, create_default_adamw, 2, 0.1 * 0.1 / 0.0316227766 + 10 * 0.1 * 0.01},
               {create_adamax, create_default_adamax, 2, 0.1 * 0.1},
               {create_lion, create_default_lion, 1, 0.1}};
  for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; ++kind)
    for (int with_options = 0; with_options < 2; ++with_options) {
      model m;
      ringlet_optimizer* optimizer = NULL;
      const ringlet_named_tensor* state = NULL;
      size_t count = 0;
      uint64_t step = 0;
      double rate = 0;
      make_model(&m, w);
      for (int i = 0; i < 3; ++i) m.bias_gradient[i] = 1;
      CHECK_OK((with_options ? kinds[kind].create : kinds[kind].create_default)(0.1, &optimizer));
      CHECK_OK(ringlet_optimizer_init(optimizer, m.parameters, 2));
      CHECK_OK(ringlet_optimizer_apply_gradients(optimizer, m.gradients, 2, m.parameters, 2));
      CHECK(near(m.bias[0], 10 - kinds[kind].first_step));
      CHECK_OK(ringlet_optimizer_state(optimizer, &state, &count));
      CHECK(count == 2 * kinds[kind].slots);
      if (count > 0) CHECK(strncmp(state[0].name, "layer.weight.", 13) == 0 && state[0].tensor.shape[0] == kRows);
      CHECK_OK(ringlet_optimizer_step(optimizer, &step));
      CHECK(step == 1);
      CHECK_OK(ringlet_optimizer_set_step(optimizer, 7));
      CHECK_OK(ringlet_optimizer_set_learning_rate(optimizer, 0.25));
      CHECK_OK(ringlet_optimizer_learning_rate(optimizer, &rate));
      CHECK(rate == 0.25);
      CHECK_CODE(ringlet_optimizer_apply_gradients(optimizer, m.gradients, 2, m.parameters, 1), RINGLET_INVALID_ARGUMENT);
      ringlet_optimizer_free(optimizer);
    }

  ringlet_optimizer* refused = NULL;
  ringlet_adam_options options;
  CHECK_OK(ringlet_adam_options_init(&options, sizeof options));
  options.betas[1] = 2;
  CHECK_CODE(ringlet_adam_create(0.1, &options, &refused), RINGLET_INVALID_ARGUMENT);
  CHECK(refused == NULL);

  model m;
  double norm = 0;
  make_model(&m, w);
  for (int i = 0; i < 3; ++i) m.bias_gradient[i] = i == 0 ? 3 : i == 1 ? 4 : 0;
  CHECK_OK(ringlet_clip_grad_norm(&m.gradients[1], 1, 1, &norm));
  CHECK(near(norm, 5) && near(m.bias_gradient[1], 0.8));
}
