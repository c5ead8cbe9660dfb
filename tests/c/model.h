#pragma once

#include "cases.h"

enum { kRows = 5, kColumns = 2, kElements = kRows * kColumns };

/* A model of two tensors, whose rows do not divide by three ranks, and its gradients. */
typedef struct {
  float weight[kElements], bias[3], weight_gradient[kElements], bias_gradient[3];
  ringlet_named_tensor parameters[2], gradients[2];
} model;

/* Makes equal parameters on all ranks. The elements of the weight's gradient are rank + index, those of the bias' gradient rank + 1. */
void make_model(model* m, const world* w);
/* Returns the mean over all ranks of rank + constant. */
float mean(const world* w, float constant);
int near(double a, double b);
