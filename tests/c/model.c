#include "model.h"

#include <math.h>
#include <string.h>

static const int64_t kShape[2] = {kRows, kColumns}, kBiasShape[1] = {3};

void make_model(model* m, const world* w) {
  const ringlet_named_tensor parameters[2] = {{"layer.weight", {m->weight, RINGLET_F32, 2, kShape, NULL}},
                                              {"layer.bias", {m->bias, RINGLET_F32, 1, kBiasShape, NULL}}};
  memcpy(m->parameters, parameters, sizeof parameters);
  memcpy(m->gradients, parameters, sizeof parameters);
  m->gradients[0].tensor.data = m->weight_gradient;
  m->gradients[1].tensor.data = m->bias_gradient;
  for (int i = 0; i < kElements; ++i) m->weight[i] = (float)i;
  for (int i = 0; i < 3; ++i) m->bias[i] = 10;
  for (int i = 0; i < kElements; ++i) m->weight_gradient[i] = (float)(w->rank + i);
  for (int i = 0; i < 3; ++i) m->bias_gradient[i] = (float)(w->rank + 1);
}

float mean(const world* w, float constant) { return (float)(w->size - 1) / 2 + constant; }

int near(double a, double b) { return fabs(a - b) < 1e-5; }
