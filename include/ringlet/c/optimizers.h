#pragma once

/** @file
 * Optimizers with MLX's formulas and defaults, given in optimizers.hpp. Parameters and gradients are f16, bf16, f32 or f64. */

#include <ringlet/c/optimizer_kinds.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Frees the optimizer and its state. */
RINGLET_API void ringlet_optimizer_free(ringlet_optimizer* optimizer);

/** Takes one step: changes the parameters in place, makes state for names that are new, and counts the step. Each gradient belongs to
 * the parameter of its name; parameters without a gradient are allowed. An error in the arguments is reported before anything has
 * changed. */
RINGLET_API int32_t ringlet_optimizer_apply_gradients(ringlet_optimizer* optimizer, const ringlet_named_tensor* gradients,
                                                      size_t gradient_count, const ringlet_named_tensor* parameters,
                                                      size_t parameter_count);
/** Makes the state for these parameters before any step, filled with zeros, so that a checkpoint can be loaded into it. */
RINGLET_API int32_t ringlet_optimizer_init(ringlet_optimizer* optimizer, const ringlet_named_tensor* parameters, size_t count);
/** Gets the memory of the state, named "parameter.slot" ("layers.0.weight.m"), for saving or loading. The elements are valid as long as
 * the optimizer, names and descriptions until the optimizer's next call. */
RINGLET_API int32_t ringlet_optimizer_state(ringlet_optimizer* optimizer, const ringlet_named_tensor** tensors, size_t* count);
/** Gets the number of steps taken, 0 at first. */
RINGLET_API int32_t ringlet_optimizer_step(const ringlet_optimizer* optimizer, uint64_t* step);
/** Sets the number of steps taken, for training that continues from a checkpoint. */
RINGLET_API int32_t ringlet_optimizer_set_step(ringlet_optimizer* optimizer, uint64_t step);
/** Gets the learning rate of the last step; before the first step, and after it was set, that of the next one. */
RINGLET_API int32_t ringlet_optimizer_learning_rate(const ringlet_optimizer* optimizer, double* learning_rate);
/** Sets the learning rate from the next step on. */
RINGLET_API int32_t ringlet_optimizer_set_learning_rate(ringlet_optimizer* optimizer, double learning_rate);

/** Scales all gradients in place so that the Euclidean norm of all their elements together is at most `max_norm`. `*norm` becomes the
 * norm before; `norm` may be NULL. */
RINGLET_API int32_t ringlet_clip_grad_norm(const ringlet_named_tensor* gradients, size_t count, double max_norm, double* norm);

#ifdef __cplusplus
}
#endif
