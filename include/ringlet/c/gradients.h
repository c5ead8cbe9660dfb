#pragma once

/** @file
 * Averages of gradients over a group. Gradients may be f16, bf16, f32, f64 and complex64, also mixed. */

#include <ringlet/c/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Beside RINGLET_F16 and RINGLET_BF16, how gradients cross the network: in blocks of 64 elements with one scale and 8 bits each (1.02
 * bytes per element), or of 32 with 4 bits each (0.53). NaNs and infinities are kept, and all ranks end with the same bits. */
enum ringlet_wire { RINGLET_WIRE_INT8 = 256, RINGLET_WIRE_INT4 = 257 };

/** Options for averaging gradients. */
typedef struct ringlet_average_options {
  size_t struct_size;         /**< set by the function that fills in the defaults */
  int64_t all_reduce_size;    /**< bytes that are moved together, 32 MiB by default; 0 or less: each tensor by itself */
  int64_t first_bucket_size;  /**< bytes of a step's first bucket, if smaller; -1: unset */
  int32_t communication_type; /**< how real gradients cross the network, the same on all ranks: RINGLET_F16, RINGLET_BF16,
                                 RINGLET_WIRE_INT8, RINGLET_WIRE_INT4; RINGLET_NO_DTYPE: each in its own dtype */
  int32_t stream;             /**< the stream of all collectives */
  const double* weight;       /**< this rank's share, such as its number of samples: the average is sum(weight * gradient) / sum(weight).
                                   NULL on all ranks or on none; finite, not negative, positive on at least one. NULL: the plain mean. */
  int32_t feedback;           /**< not 0: what this rank's rounding to blocks leaves out is added to its gradients of the next step */
  int64_t least_elements;     /**< gradients with fewer elements are sent as bf16 instead of blocks, 16384 by default; 0: none */
} ringlet_average_options;
/** Fills in the defaults; struct_size must be `sizeof *options`. */
RINGLET_API int32_t ringlet_average_options_init(ringlet_average_options* options, size_t struct_size);

/** Replaces each gradient by its mean over the group, in place. The first call with these names, order, dtypes and shapes compares them
 * between the ranks: if they differ, all ranks get RINGLET_MISMATCH with the first difference, and the group stays usable. */
RINGLET_API int32_t ringlet_average_gradients(ringlet_group* group, const ringlet_named_tensor* gradients, size_t count,
                                              const ringlet_average_options* options);

/** Averages gradients while further ones are still being computed. They are given in the same order on every rank. */
typedef struct ringlet_averager ringlet_averager;
/** Makes an averager, which may be used for any number of steps. */
RINGLET_API int32_t ringlet_averager_create(ringlet_group* group, const ringlet_average_options* options, ringlet_averager** averager);
/** Adds the step's next gradient, whose elements are borrowed until ringlet_averager_finish has returned. */
RINGLET_API int32_t ringlet_averager_add(ringlet_averager* averager, const ringlet_tensor* gradient);
/** Ends the step: waits for all averages and writes them into the gradients. */
RINGLET_API int32_t ringlet_averager_finish(ringlet_averager* averager);
/** Sets this rank's weight from the next step on; NULL means the plain mean. Must not be called within a step. */
RINGLET_API int32_t ringlet_averager_set_weight(ringlet_averager* averager, const double* weight);
/** Waits for the operations that have started, and frees the averager. */
RINGLET_API void ringlet_averager_free(ringlet_averager* averager);

/** Averages gradients that are registered once and then reported as they become ready, in any order. */
typedef struct ringlet_bucketer ringlet_bucketer;
/** Makes a bucketer. `gradients` is the memory that every step uses, in the order of the forward pass; it is borrowed until the bucketer
 * is freed. If `options` is NULL, the defaults apply, but the first bucket has 1 MiB. If `allow_missing` is not 0, a step may end with
 * gradients that were not reported. Collective. */
RINGLET_API int32_t ringlet_bucketer_create(ringlet_group* group, const ringlet_named_tensor* gradients, size_t count,
                                            const ringlet_average_options* options, int32_t allow_missing, ringlet_bucketer** bucketer);
/** Reports that the gradient of this number in the array is complete; it must not be touched until ringlet_bucketer_finish has returned. */
RINGLET_API int32_t ringlet_bucketer_ready(ringlet_bucketer* bucketer, size_t index);
/** The same, by name. */
RINGLET_API int32_t ringlet_bucketer_ready_name(ringlet_bucketer* bucketer, const char* name);
/** Ends the step: waits for all averages. A gradient that this rank has not reported counts as zeros. */
RINGLET_API int32_t ringlet_bucketer_finish(ringlet_bucketer* bucketer);
/** Gets the gradients that at least one rank reported in the last step, with their averages. Valid until the bucketer's next call. */
RINGLET_API int32_t ringlet_bucketer_averaged(ringlet_bucketer* bucketer, const ringlet_named_tensor** gradients, size_t* count);
/** Sets this rank's weight from the next step on; NULL means the plain mean. Must not be called within a step. */
RINGLET_API int32_t ringlet_bucketer_set_weight(ringlet_bucketer* bucketer, const double* weight);
/** Waits for the operations that have started, and frees the bucketer. */
RINGLET_API void ringlet_bucketer_free(ringlet_bucketer* bucketer);

#ifdef __cplusplus
}
#endif
