#pragma once

/** @file
 * Optimizer state in shards (FSDP), parameters in shards, and parts of weights for tensor parallelism. Tensors are split along axis 0. */

#include <ringlet/c/group.h>
#include <ringlet/c/optimizers.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Takes a step on shards: changes `parameters` in place by `gradients` of the same names and shapes. Returns 0, or anything else to have
 * the call fail with RINGLET_CALLBACK_FAILED. The arrays are valid until it returns. Called by the thread that called. */
typedef int32_t (*ringlet_apply_gradients)(void* context, const ringlet_named_tensor* gradients, size_t gradient_count,
                                           const ringlet_named_tensor* parameters, size_t parameter_count);

/** How FSDP's step shards and moves. */
typedef struct ringlet_fsdp_options {
  size_t struct_size;            /**< set by the function that fills in the defaults */
  const ringlet_group* dp_group; /**< ranks that hold the same shard, over which gradients are averaged, too; NULL: none */
  int64_t communication_size;    /**< bytes that are moved together, 32 MiB; 0 or less: each tensor by itself */
  const double* max_norm;        /**< gradients are scaled so that their global norm is at most this; NULL: not at all */
  const double* shard_weights;   /**< each rank's share of the rows, one per rank, the same on every rank; NULL: even shares */
  size_t shard_weight_count;     /**< of them: 0, or the group's size */
  int32_t reduce_dtype;          /**< the floating dtype that gradients are reduced in; RINGLET_NO_DTYPE: their own */
  int32_t stream;                /**< of all collectives */
} ringlet_fsdp_options;
/** Fills in the defaults; struct_size is `sizeof *options`. */
RINGLET_API int32_t ringlet_fsdp_options_init(ringlet_fsdp_options* options, size_t struct_size);

/** One step over full parameters and gradients of the same names, order and shapes on every rank: gradients are averaged and scattered,
 * each rank's optimizer sees only its rows of every tensor, and the updated rows are gathered again. `*norm` becomes the global norm before
 * clipping, or -1 where max_norm is NULL; may be NULL. With one rank the optimizer gets the tensors as they are. The second form calls
 * `apply` instead of an optimizer; after an error of either the ranks' parameters may differ. */
/** @{ */
RINGLET_API int32_t ringlet_fsdp_apply_gradients(ringlet_group* group, const ringlet_named_tensor* gradients, size_t gradient_count,
                                                 const ringlet_named_tensor* parameters, size_t parameter_count,
                                                 ringlet_optimizer* optimizer, const ringlet_fsdp_options* options, double* norm);
RINGLET_API int32_t ringlet_fsdp_apply_gradients_with(ringlet_group* group, const ringlet_named_tensor* gradients, size_t gradient_count,
                                                      const ringlet_named_tensor* parameters, size_t parameter_count,
                                                      ringlet_apply_gradients apply, void* context, const ringlet_fsdp_options* options,
                                                      double* norm);
/** @} */

/** The same with buffers that are kept from step to step. */
typedef struct ringlet_fsdp_updater ringlet_fsdp_updater;
/** Makes one. */
RINGLET_API int32_t ringlet_fsdp_updater_create(ringlet_group* group, const ringlet_fsdp_options* options, ringlet_fsdp_updater** updater);
/** One step, as ringlet_fsdp_apply_gradients. */
/** @{ */
RINGLET_API int32_t ringlet_fsdp_updater_apply_gradients(ringlet_fsdp_updater* updater, const ringlet_named_tensor* gradients,
                                                         size_t gradient_count, const ringlet_named_tensor* parameters,
                                                         size_t parameter_count, ringlet_optimizer* optimizer, double* norm);
RINGLET_API int32_t ringlet_fsdp_updater_apply_gradients_with(ringlet_fsdp_updater* updater, const ringlet_named_tensor* gradients,
                                                              size_t gradient_count, const ringlet_named_tensor* parameters,
                                                              size_t parameter_count, ringlet_apply_gradients apply, void* context,
                                                              double* norm);
/** @} */
/** Frees its buffers. */
RINGLET_API void ringlet_fsdp_updater_free(ringlet_fsdp_updater* updater);

/** How tensors are split over ranks. May be read by any threads. */
typedef struct ringlet_shard_layout ringlet_shard_layout;
/** Of these names and shapes over so many ranks, whose shares `weights` says: one per rank, or none (NULL and 0): even shares. */
RINGLET_API int32_t ringlet_shard_layout_create(const ringlet_named_tensor* tensors, size_t count, int32_t ranks, const double* weights,
                                                size_t weight_count, ringlet_shard_layout** layout);
/** As the updater's last step laid its parameters out. RINGLET_INVALID_ARGUMENT before the first. */
RINGLET_API int32_t ringlet_fsdp_updater_layout(const ringlet_fsdp_updater* updater, ringlet_shard_layout** layout);
/** Which rows of axis 0 of a tensor stand at a rank: `*begin` and behind, before `*end`. */
RINGLET_API int32_t ringlet_shard_layout_rows(const ringlet_shard_layout* layout, const char* name, int32_t rank, int64_t* begin,
                                              int64_t* end);
/** Frees the layout; what was made with it lives on. */
RINGLET_API void ringlet_shard_layout_free(ringlet_shard_layout* layout);

/** Scales sharded gradients, in place, so that the norm over all ranks' shards is at most `max_norm`. `*norm` becomes the norm before; may
 * be NULL. A collective of the stream. */
RINGLET_API int32_t ringlet_clip_grad_norm_sharded(ringlet_group* group, const ringlet_named_tensor* gradients, size_t count,
                                                   double max_norm, int32_t stream, double* norm);

/** How parameters in shards are gathered and reduced. */
typedef struct ringlet_fully_shard_options {
  size_t struct_size;          /**< set by the function that fills in the defaults */
  const double* shard_weights; /**< each rank's share of the rows, one per rank, the same on every rank; NULL: even shares */
  size_t shard_weight_count;   /**< of them: 0, or the group's size */
  int32_t compute_dtype;       /**< the floating dtype that parameters are gathered and used in; RINGLET_NO_DTYPE: their own */
  int32_t reduce_dtype;        /**< the floating dtype that gradients are reduced in; RINGLET_NO_DTYPE: their own */
  int32_t prefetch;            /**< 1: gathers ahead of the module in use, and reductions behind it; each takes one module's memory */
  int32_t stream;              /**< of all collectives */
} ringlet_fully_shard_options;
/** Fills in the defaults; struct_size is `sizeof *options`. */
RINGLET_API int32_t ringlet_fully_shard_options_init(ringlet_fully_shard_options* options, size_t struct_size);

/** Parameters that live as shards, gathered module by module while they are used. Every rank makes the same calls in the same order. */
typedef struct ringlet_fully_shard ringlet_fully_shard;
/** A module's full parameters, until they are released. */
typedef struct ringlet_unsharded ringlet_unsharded;

/** Makes one without modules. */
RINGLET_API int32_t ringlet_fully_shard_create(ringlet_group* group, const ringlet_fully_shard_options* options,
                                               ringlet_fully_shard** sharded);
/** Frees the shards, too. */
RINGLET_API void ringlet_fully_shard_free(ringlet_fully_shard* sharded);
/** Adds the next module in the order of the forward pass, copying this rank's rows of its parameters. `*module` becomes its number, from 0;
 * may be NULL. Collective. */
RINGLET_API int32_t ringlet_fully_shard_add(ringlet_fully_shard* sharded, const char* name, const ringlet_named_tensor* parameters,
                                            size_t count, size_t* module);
/** Waits until the module's parameters are gathered; forward starts with the next module, backward with the one before. The tensors are
 * read only and valid until `*unsharded` is released: soon, since that frees their memory. */
/** @{ */
RINGLET_API int32_t ringlet_fully_shard_forward(ringlet_fully_shard* sharded, size_t module, ringlet_unsharded** unsharded,
                                                const ringlet_named_tensor** parameters, size_t* count);
RINGLET_API int32_t ringlet_fully_shard_backward(ringlet_fully_shard* sharded, size_t module, ringlet_unsharded** unsharded,
                                                 const ringlet_named_tensor** parameters, size_t* count);
/** @} */
/** Lets the full parameters go. */
RINGLET_API void ringlet_unsharded_release(ringlet_unsharded* unsharded);
/** Starts to average the module's full gradients over the ranks; they are read during the call only. Once per module and step. */
RINGLET_API int32_t ringlet_fully_shard_reduce_gradients(ringlet_fully_shard* sharded, size_t module, const ringlet_named_tensor* gradients,
                                                         size_t count);
/** Ends the step: waits for all its gradients. */
RINGLET_API int32_t ringlet_fully_shard_finish(ringlet_fully_shard* sharded);
/** This rank's shards, named "module.parameter", and the averaged gradients for them after ringlet_fully_shard_finish: what an optimizer
 * takes. The memory is `sharded`'s; gradients are valid until the next step's first, descriptions until the same function's next call. */
/** @{ */
RINGLET_API int32_t ringlet_fully_shard_parameters(ringlet_fully_shard* sharded, const ringlet_named_tensor** parameters, size_t* count);
RINGLET_API int32_t ringlet_fully_shard_gradients(ringlet_fully_shard* sharded, const ringlet_named_tensor** gradients, size_t* count);
/** @} */
/** Of all modules added so far: for checkpoints. */
RINGLET_API int32_t ringlet_fully_shard_layout(const ringlet_fully_shard* sharded, ringlet_shard_layout** layout);

/** Copies this rank's part of a weight or bias along `axis` to `output`, whose extent there is the input's divided by the group's size.
 * `segments`: the extents of what was fused into one matrix and is cut apart, adding up to the axis' extent; NULL and 0: the whole axis. */
RINGLET_API int32_t ringlet_shard_axis(const ringlet_group* group, const ringlet_tensor* input, size_t axis, const int64_t* segments,
                                       size_t segment_count, const ringlet_tensor* output);

#ifdef __cplusplus
}
#endif
