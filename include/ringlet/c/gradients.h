#pragma once

/** @file
 * Averages of gradients over a group. Dtypes are f16, bf16, f32, f64 and complex64; they may be mixed. */

#include <ringlet/c/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How gradients are averaged. */
typedef struct ringlet_average_options {
  size_t struct_size;         /**< set by the function that fills in the defaults */
  int64_t all_reduce_size;    /**< bytes that are moved together, 32 MiB; 0 or less: each tensor by itself */
  int64_t first_bucket_size;  /**< bytes of a step's first bucket, where smaller; -1 is unset */
  int32_t communication_type; /**< RINGLET_F16 or RINGLET_BF16: what crosses the network; RINGLET_NO_DTYPE: each tensor's own */
  int32_t stream;             /**< of all collectives */
  const double* weight;       /**< this rank's share, such as its number of samples: the average is sum(weight * gradient) / sum(weight).
                                   NULL on all ranks or on none; finite, not negative, positive on at least one. NULL: the plain mean. */
} ringlet_average_options;
/** Fills in the defaults; struct_size is `sizeof *options`. */
RINGLET_API int32_t ringlet_average_options_init(ringlet_average_options* options, size_t struct_size);

/** Each gradient becomes its mean over the group, in place. At the first call with these names, order, dtypes and shapes they are compared
 * between the ranks: where they differ, all ranks get RINGLET_MISMATCH with the first difference, and the group lives on. */
RINGLET_API int32_t ringlet_average_gradients(ringlet_group* group, const ringlet_named_tensor* gradients, size_t count,
                                              const ringlet_average_options* options);

/** Averages gradients while they are still being made, given in the same order on every rank. */
typedef struct ringlet_averager ringlet_averager;
/** Makes one, which may be used for any number of steps. */
RINGLET_API int32_t ringlet_averager_create(ringlet_group* group, const ringlet_average_options* options, ringlet_averager** averager);
/** Takes the step's next gradient, whose elements are borrowed until ringlet_averager_finish has returned. */
RINGLET_API int32_t ringlet_averager_add(ringlet_averager* averager, const ringlet_tensor* gradient);
/** Ends the step: waits for all averages and writes them into the gradients. */
RINGLET_API int32_t ringlet_averager_finish(ringlet_averager* averager);
/** This rank's weight from the next step on, NULL for the plain mean. Not within a step. */
RINGLET_API int32_t ringlet_averager_set_weight(ringlet_averager* averager, const double* weight);
/** Waits for what has started. */
RINGLET_API void ringlet_averager_free(ringlet_averager* averager);

/** Averages gradients that are registered once and reported as they come, in any order. */
typedef struct ringlet_bucketer ringlet_bucketer;
/** `gradients` are the memory that every step uses, in the order of the forward pass; it is borrowed until the bucketer is freed. NULL
 * options also put 1 MiB as the first bucket. `allow_missing` not 0: a step may end with gradients that were not reported. Collective. */
RINGLET_API int32_t ringlet_bucketer_create(ringlet_group* group, const ringlet_named_tensor* gradients, size_t count,
                                            const ringlet_average_options* options, int32_t allow_missing, ringlet_bucketer** bucketer);
/** The gradient of this number in the array is complete, and is not touched until ringlet_bucketer_finish has returned. */
RINGLET_API int32_t ringlet_bucketer_ready(ringlet_bucketer* bucketer, size_t index);
/** The same by name. */
RINGLET_API int32_t ringlet_bucketer_ready_name(ringlet_bucketer* bucketer, const char* name);
/** Ends the step: waits for all averages. What this rank has not reported counts as zeros. */
RINGLET_API int32_t ringlet_bucketer_finish(ringlet_bucketer* bucketer);
/** The gradients that at least one rank reported in the last step, with their averages. Valid until the bucketer's next call. */
RINGLET_API int32_t ringlet_bucketer_averaged(ringlet_bucketer* bucketer, const ringlet_named_tensor** gradients, size_t* count);
/** This rank's weight from the next step on, NULL for the plain mean. Not within a step. */
RINGLET_API int32_t ringlet_bucketer_set_weight(ringlet_bucketer* bucketer, const double* weight);
/** Waits for what has started. */
RINGLET_API void ringlet_bucketer_free(ringlet_bucketer* bucketer);

#ifdef __cplusplus
}
#endif
