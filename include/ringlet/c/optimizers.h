#pragma once

/** @file
 * Optimizers with MLX's formulas and defaults, given in optimizers.hpp. Parameters and gradients are f16, bf16, f32 or f64. */

#include <ringlet/c/optimizer_kinds.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Frees the optimizer and its state. */
RINGLET_API void ringlet_optimizer_free(ringlet_optimizer* optimizer);

/** Takes one step: changes the parameters in place, makes state for names it has not met, counts the step. The gradients are those of all
 * or some of the parameters, by name. What it refuses it refuses before it has changed anything. */
RINGLET_API int32_t ringlet_optimizer_apply_gradients(ringlet_optimizer* optimizer, const ringlet_named_tensor* gradients,
                                                      size_t gradient_count, const ringlet_named_tensor* parameters,
                                                      size_t parameter_count);
/** Makes the state for these parameters before any step, zeros, for a checkpoint to be read into. */
RINGLET_API int32_t ringlet_optimizer_init(ringlet_optimizer* optimizer, const ringlet_named_tensor* parameters, size_t count);
/** The state's own memory, as "parameter.slot" ("layers.0.weight.m"): to be saved, or read into. The elements are good as long as the
 * optimizer is; names and descriptions until the optimizer's next call. */
RINGLET_API int32_t ringlet_optimizer_state(ringlet_optimizer* optimizer, const ringlet_named_tensor** tensors, size_t* count);
/** Steps taken, 0 at first. */
RINGLET_API int32_t ringlet_optimizer_step(const ringlet_optimizer* optimizer, uint64_t* step);
/** When training goes on from a checkpoint. */
RINGLET_API int32_t ringlet_optimizer_set_step(ringlet_optimizer* optimizer, uint64_t step);
/** The learning rate of the last step; before the first, and after it was set, the one of the next. */
RINGLET_API int32_t ringlet_optimizer_learning_rate(const ringlet_optimizer* optimizer, double* learning_rate);
/** From the next step on. */
RINGLET_API int32_t ringlet_optimizer_set_learning_rate(ringlet_optimizer* optimizer, double learning_rate);

/** Scales all gradients, in place, so that the Euclidean norm of all their elements together is at most `max_norm`. `*norm` becomes the
 * norm before; may be NULL. */
RINGLET_API int32_t ringlet_clip_grad_norm(const ringlet_named_tensor* gradients, size_t count, double max_norm, double* norm);

#ifdef __cplusplus
}
#endif
