#pragma once

/** @file
 * FSDP with sharded optimizer state or sharded parameters, and parts of weights for tensor parallelism. Tensors are split along axis 0. */

#include <ringlet/c/gradients.h>
#include <ringlet/c/group.h>
#include <ringlet/c/optimizers.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A function of the caller that takes a step on shards: it changes `parameters` in place by `gradients` of the same names and shapes.
 * It returns 0, or any other value to make the call fail with RINGLET_CALLBACK_FAILED. The arrays are valid until it returns. It runs on
 * the thread that made the call. */
typedef int32_t (*ringlet_apply_gradients)(void* context, const ringlet_named_tensor* gradients, size_t gradient_count,
                                           const ringlet_named_tensor* parameters, size_t parameter_count);

/** Options of the FSDP step. */
typedef struct ringlet_fsdp_options {
  size_t struct_size;            /**< set by the function that fills in the defaults */
  const ringlet_group* dp_group; /**< the ranks that hold the same shard; gradients are averaged over them, too; NULL: none */
  int64_t communication_size;    /**< bytes that are moved together, 32 MiB by default; 0 or less: each tensor by itself */
  const double* max_norm;        /**< gradients are scaled so that their global norm is at most this; NULL: not at all */
  const double* shard_weights;   /**< each rank's share of the rows, one per rank, the same on every rank; NULL: even shares */
  size_t shard_weight_count;     /**< number of shard_weights: 0, or the group's size */
  int32_t reduce_dtype;          /**< how gradients are reduced: in a floating dtype, RINGLET_WIRE_INT8 or RINGLET_WIRE_INT4;
                                    RINGLET_NO_DTYPE: in their own dtype */
  int32_t stream;                /**< the stream of all collectives */
  int32_t feedback;              /**< as in ringlet_average_options; it needs a ringlet_fsdp_updater */
  int64_t least_elements;        /**< as in ringlet_average_options */
} ringlet_fsdp_options;
/** Fills in the defaults; struct_size must be `sizeof *options`. */
RINGLET_API int32_t ringlet_fsdp_options_init(ringlet_fsdp_options* options, size_t struct_size);

/** Takes one step over full parameters and gradients, which have the same names, order and shapes on every rank: gradients are averaged
 * and scattered, each rank's optimizer sees only its rows of every tensor, and the updated rows are gathered again. `*norm` becomes the
 * global norm before clipping, or -1 if max_norm is NULL; `norm` may be NULL. With one rank the optimizer gets the tensors as they are.
 * The second form calls `apply` instead of an optimizer. After an error of either the ranks' parameters may differ. */
/** @{ */
RINGLET_API int32_t ringlet_fsdp_apply_gradients(ringlet_group* group, const ringlet_named_tensor* gradients, size_t gradient_count,
                                                 const ringlet_named_tensor* parameters, size_t parameter_count,
                                                 ringlet_optimizer* optimizer, const ringlet_fsdp_options* options, double* norm);
RINGLET_API int32_t ringlet_fsdp_apply_gradients_with(ringlet_group* group, const ringlet_named_tensor* gradients, size_t gradient_count,
                                                      const ringlet_named_tensor* parameters, size_t parameter_count,
                                                      ringlet_apply_gradients apply, void* context, const ringlet_fsdp_options* options,
                                                      double* norm);
/** @} */

/** An FSDP step whose buffers are kept from step to step. */
typedef struct ringlet_fsdp_updater ringlet_fsdp_updater;
/** Makes an updater. */
RINGLET_API int32_t ringlet_fsdp_updater_create(ringlet_group* group, const ringlet_fsdp_options* options, ringlet_fsdp_updater** updater);
/** Takes one step like ringlet_fsdp_apply_gradients. */
/** @{ */
RINGLET_API int32_t ringlet_fsdp_updater_apply_gradients(ringlet_fsdp_updater* updater, const ringlet_named_tensor* gradients,
                                                         size_t gradient_count, const ringlet_named_tensor* parameters,
                                                         size_t parameter_count, ringlet_optimizer* optimizer, double* norm);
RINGLET_API int32_t ringlet_fsdp_updater_apply_gradients_with(ringlet_fsdp_updater* updater, const ringlet_named_tensor* gradients,
                                                              size_t gradient_count, const ringlet_named_tensor* parameters,
                                                              size_t parameter_count, ringlet_apply_gradients apply, void* context,
                                                              double* norm);
/** @} */
/** Frees the updater and its buffers. */
RINGLET_API void ringlet_fsdp_updater_free(ringlet_fsdp_updater* updater);

/** The way in which tensors are split over ranks. Any threads may read it at the same time. */
typedef struct ringlet_shard_layout ringlet_shard_layout;
/** Makes a layout for tensors of these names and shapes over `ranks` ranks. `weights` has each rank's share; NULL and 0 mean even
 * shares. */
RINGLET_API int32_t ringlet_shard_layout_create(const ringlet_named_tensor* tensors, size_t count, int32_t ranks, const double* weights,
                                                size_t weight_count, ringlet_shard_layout** layout);
/** Gets the layout of the parameters of the updater's last step. RINGLET_INVALID_ARGUMENT before the first step. */
RINGLET_API int32_t ringlet_fsdp_updater_layout(const ringlet_fsdp_updater* updater, ringlet_shard_layout** layout);
/** Gets the rows of axis 0 of a tensor that a rank has: from `*begin` up to, but not including, `*end`. */
RINGLET_API int32_t ringlet_shard_layout_rows(const ringlet_shard_layout* layout, const char* name, int32_t rank, int64_t* begin,
                                              int64_t* end);
/** Frees the layout; objects that were made with it stay valid. */
RINGLET_API void ringlet_shard_layout_free(ringlet_shard_layout* layout);

/** Scales sharded gradients in place so that the norm over all ranks' shards is at most `max_norm`. `*norm` becomes the norm before;
 * `norm` may be NULL. It is a collective of the stream. */
RINGLET_API int32_t ringlet_clip_grad_norm_sharded(ringlet_group* group, const ringlet_named_tensor* gradients, size_t count,
                                                   double max_norm, int32_t stream, double* norm);

/** Options of ringlet_fully_shard. */
typedef struct ringlet_fully_shard_options {
  size_t struct_size;          /**< set by the function that fills in the defaults */
  const double* shard_weights; /**< each rank's share of the rows, one per rank, the same on every rank; NULL: even shares */
  size_t shard_weight_count;   /**< number of shard_weights: 0, or the group's size */
  int32_t compute_dtype;       /**< the floating dtype in which parameters are gathered and used; RINGLET_NO_DTYPE: their own */
  int32_t reduce_dtype;        /**< how gradients are reduced, as in ringlet_fsdp_options */
  int32_t prefetch;            /**< 1: gathers ahead of the module in use, and reductions behind it; each takes one module's memory */
  int32_t stream;              /**< the stream of all collectives */
  int32_t feedback;            /**< as in ringlet_average_options; it takes 8 bytes per element of the full parameters */
  int64_t least_elements;      /**< as in ringlet_average_options */
} ringlet_fully_shard_options;
/** Fills in the defaults; struct_size must be `sizeof *options`. */
RINGLET_API int32_t ringlet_fully_shard_options_init(ringlet_fully_shard_options* options, size_t struct_size);

/** Parameters that are stored as shards, and gathered module by module while they are used. Every rank makes the same calls in the same
 * order. */
typedef struct ringlet_fully_shard ringlet_fully_shard;
/** A module's full parameters until they are released. */
typedef struct ringlet_unsharded ringlet_unsharded;

/** Makes an object without modules. */
RINGLET_API int32_t ringlet_fully_shard_create(ringlet_group* group, const ringlet_fully_shard_options* options,
                                               ringlet_fully_shard** sharded);
/** Frees the object and its shards. */
RINGLET_API void ringlet_fully_shard_free(ringlet_fully_shard* sharded);
/** Adds the next module in the order of the forward pass, and copies this rank's rows of its parameters. `*module` becomes its number,
 * counted from 0; `module` may be NULL. Collective. */
RINGLET_API int32_t ringlet_fully_shard_add(ringlet_fully_shard* sharded, const char* name, const ringlet_named_tensor* parameters,
                                            size_t count, size_t* module);
/** Waits until the module's parameters are gathered. Then `forward` starts to gather the next module, and `backward` the one before. The
 * tensors may only be read, and are valid until `*unsharded` is released, which should be soon because it frees their memory. */
/** @{ */
RINGLET_API int32_t ringlet_fully_shard_forward(ringlet_fully_shard* sharded, size_t module, ringlet_unsharded** unsharded,
                                                const ringlet_named_tensor** parameters, size_t* count);
RINGLET_API int32_t ringlet_fully_shard_backward(ringlet_fully_shard* sharded, size_t module, ringlet_unsharded** unsharded,
                                                 const ringlet_named_tensor** parameters, size_t* count);
/** @} */
/** Releases the full parameters. */
RINGLET_API void ringlet_unsharded_release(ringlet_unsharded* unsharded);
/** Starts to average the module's full gradients over the ranks; they are read only during the call. Once per module and step. */
RINGLET_API int32_t ringlet_fully_shard_reduce_gradients(ringlet_fully_shard* sharded, size_t module, const ringlet_named_tensor* gradients,
                                                         size_t count);
/** Ends the step: waits for the averages of all its gradients. */
RINGLET_API int32_t ringlet_fully_shard_finish(ringlet_fully_shard* sharded);
/** Get this rank's shards, named "module.parameter", and, after ringlet_fully_shard_finish, their averaged gradients, in the form that
 * an optimizer takes. `sharded` owns the memory. Gradients are valid until the next step's first gradients, descriptions until the next
 * call of the same function. */
/** @{ */
RINGLET_API int32_t ringlet_fully_shard_parameters(ringlet_fully_shard* sharded, const ringlet_named_tensor** parameters, size_t* count);
RINGLET_API int32_t ringlet_fully_shard_gradients(ringlet_fully_shard* sharded, const ringlet_named_tensor** gradients, size_t* count);
/** @} */
/** Gets the layout of all modules added so far, for checkpoints. */
RINGLET_API int32_t ringlet_fully_shard_layout(const ringlet_fully_shard* sharded, ringlet_shard_layout** layout);

/** Copies this rank's part of a weight or bias along `axis` to `output`, whose extent there is the input's divided by the group's size.
 * If several matrices were fused into one, `segments` has the extent of each along the axis, and each is split by itself; they add up to
 * the axis' extent. NULL and 0 mean one segment, the whole axis. */
RINGLET_API int32_t ringlet_shard_axis(const ringlet_group* group, const ringlet_tensor* input, size_t axis, const int64_t* segments,
                                       size_t segment_count, const ringlet_tensor* output);

#ifdef __cplusplus
}
#endif
