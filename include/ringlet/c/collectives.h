#pragma once

/* Made by bindings/generator from the library's tables: see ARCHITECTURE.md, "Tables". */

/** @file
 * Collectives of a group. Every rank of the group makes the same calls in the same order. Each returns when it has ended; its `_async` form
 * returns once it is started: the tensors' elements are then borrowed until the work has ended. A mistake in the arguments is reported by
 * that call or, where it is found later, by the work. A mistake between ranks (another operation, dtype or size) is RINGLET_MISMATCH on
 * all, with a message that says what each of them called. `counts` has one number per rank of the group and is the same on every rank.
 * `options` may be NULL. */

#include <ringlet/c/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Reduces over all ranks; every rank ends with the same bits. `output` has the dtype and element count of `input`, and is the same memory
 * or does not overlap it. */
/** @{ */
RINGLET_API int32_t ringlet_all_reduce(ringlet_group* group, int32_t op, const ringlet_tensor* input, const ringlet_tensor* output,
                                       const ringlet_call_options* options);
RINGLET_API int32_t ringlet_all_reduce_async(ringlet_group* group, int32_t op, const ringlet_tensor* input, const ringlet_tensor* output,
                                             const ringlet_call_options* options, ringlet_work** work);
/** @} */

/** As all_reduce: the mean over all ranks. Floating dtypes only. */
/** @{ */
RINGLET_API int32_t ringlet_all_mean(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                     const ringlet_call_options* options);
RINGLET_API int32_t ringlet_all_mean_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                           const ringlet_call_options* options, ringlet_work** work);
/** @} */

/** Rank r gets the r-th part of axis 0 of the reduced input; where the rows do not divide by the ranks the first ranks get one more.
 * `output` must not overlap `input`. */
/** @{ */
RINGLET_API int32_t ringlet_reduce_scatter(ringlet_group* group, int32_t op, const ringlet_tensor* input, const ringlet_tensor* output,
                                           const ringlet_call_options* options);
RINGLET_API int32_t ringlet_reduce_scatter_async(ringlet_group* group, int32_t op, const ringlet_tensor* input,
                                                 const ringlet_tensor* output, const ringlet_call_options* options, ringlet_work** work);
/** @} */
/** The same with counts[r] rows for rank r. */
/** @{ */
RINGLET_API int32_t ringlet_reduce_scatter_v(ringlet_group* group, int32_t op, const ringlet_tensor* input, const ringlet_tensor* output,
                                             const int64_t* counts, const ringlet_call_options* options);
RINGLET_API int32_t ringlet_reduce_scatter_v_async(ringlet_group* group, int32_t op, const ringlet_tensor* input,
                                                   const ringlet_tensor* output, const int64_t* counts, const ringlet_call_options* options,
                                                   ringlet_work** work);
/** @} */

/** As reduce_scatter: the mean over all ranks. Floating dtypes only. */
/** @{ */
RINGLET_API int32_t ringlet_mean_scatter(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                         const ringlet_call_options* options);
RINGLET_API int32_t ringlet_mean_scatter_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                               const ringlet_call_options* options, ringlet_work** work);
/** @} */
/** The same with counts[r] rows for rank r. */
/** @{ */
RINGLET_API int32_t ringlet_mean_scatter_v(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                           const int64_t* counts, const ringlet_call_options* options);
RINGLET_API int32_t ringlet_mean_scatter_v_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                                 const int64_t* counts, const ringlet_call_options* options, ringlet_work** work);
/** @} */

/** Concatenates every rank's `input` along axis 0, in rank order. Same shape on all ranks. */
/** @{ */
RINGLET_API int32_t ringlet_all_gather(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                       const ringlet_call_options* options);
RINGLET_API int32_t ringlet_all_gather_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                             const ringlet_call_options* options, ringlet_work** work);
/** @} */
/** The same with counts[r] rows of rank r. In place: `input` is this rank's part of `output`. */
/** @{ */
RINGLET_API int32_t ringlet_all_gather_v(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                         const int64_t* counts, const ringlet_call_options* options);
RINGLET_API int32_t ringlet_all_gather_v_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                               const int64_t* counts, const ringlet_call_options* options, ringlet_work** work);
/** @} */

/** Copies `values` of rank `root` to every rank. */
/** @{ */
RINGLET_API int32_t ringlet_broadcast(ringlet_group* group, const ringlet_tensor* values, int32_t root,
                                      const ringlet_call_options* options);
RINGLET_API int32_t ringlet_broadcast_async(ringlet_group* group, const ringlet_tensor* values, int32_t root,
                                            const ringlet_call_options* options, ringlet_work** work);
/** @} */

/** Ends once every rank has called it. */
/** @{ */
RINGLET_API int32_t ringlet_barrier(ringlet_group* group, const ringlet_call_options* options);
RINGLET_API int32_t ringlet_barrier_async(ringlet_group* group, const ringlet_call_options* options, ringlet_work** work);
/** @} */

/** Reduces over all ranks into `output` of rank `root`. Elsewhere `output` is not looked at and may be NULL. */
/** @{ */
RINGLET_API int32_t ringlet_reduce(ringlet_group* group, int32_t op, const ringlet_tensor* input, const ringlet_tensor* output,
                                   int32_t root, const ringlet_call_options* options);
RINGLET_API int32_t ringlet_reduce_async(ringlet_group* group, int32_t op, const ringlet_tensor* input, const ringlet_tensor* output,
                                         int32_t root, const ringlet_call_options* options, ringlet_work** work);
/** @} */

/** As reduce: the mean over all ranks. Floating dtypes only. */
/** @{ */
RINGLET_API int32_t ringlet_reduce_mean(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, int32_t root,
                                        const ringlet_call_options* options);
RINGLET_API int32_t ringlet_reduce_mean_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, int32_t root,
                                              const ringlet_call_options* options, ringlet_work** work);
/** @} */

/** Rank `root` gets every rank's `input`, concatenated along axis 0. Elsewhere `output` is not looked at and may be NULL. */
/** @{ */
RINGLET_API int32_t ringlet_gather(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, int32_t root,
                                   const ringlet_call_options* options);
RINGLET_API int32_t ringlet_gather_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, int32_t root,
                                         const ringlet_call_options* options, ringlet_work** work);
/** @} */
/** The same with counts[r] rows of rank r. */
/** @{ */
RINGLET_API int32_t ringlet_gather_v(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, const int64_t* counts,
                                     int32_t root, const ringlet_call_options* options);
RINGLET_API int32_t ringlet_gather_v_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                           const int64_t* counts, int32_t root, const ringlet_call_options* options, ringlet_work** work);
/** @} */

/** Rank r gets the r-th part along axis 0 of `input` of rank `root`; the rows must divide by the ranks. Elsewhere than on the root `input`
 * is not looked at and may be NULL. */
/** @{ */
RINGLET_API int32_t ringlet_scatter(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, int32_t root,
                                    const ringlet_call_options* options);
RINGLET_API int32_t ringlet_scatter_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output, int32_t root,
                                          const ringlet_call_options* options, ringlet_work** work);
/** @} */
/** The same with counts[r] rows for rank r. */
/** @{ */
RINGLET_API int32_t ringlet_scatter_v(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                      const int64_t* counts, int32_t root, const ringlet_call_options* options);
RINGLET_API int32_t ringlet_scatter_v_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                            const int64_t* counts, int32_t root, const ringlet_call_options* options, ringlet_work** work);
/** @} */

/** The r-th part along axis 0 of `input` goes to rank r; the r-th part of `output` comes from rank r. The rows must divide by the ranks.
 * `output` must not overlap `input`. */
/** @{ */
RINGLET_API int32_t ringlet_all_to_all(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                       const ringlet_call_options* options);
RINGLET_API int32_t ringlet_all_to_all_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                             const ringlet_call_options* options, ringlet_work** work);
/** @} */
/** The same with send_counts[r] rows to rank r and receive_counts[r] from it; these are each rank's own, one per rank of the group. */
/** @{ */
RINGLET_API int32_t ringlet_all_to_all_v(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                         const int64_t* send_counts, const int64_t* receive_counts, const ringlet_call_options* options);
RINGLET_API int32_t ringlet_all_to_all_v_async(ringlet_group* group, const ringlet_tensor* input, const ringlet_tensor* output,
                                               const int64_t* send_counts, const int64_t* receive_counts,
                                               const ringlet_call_options* options, ringlet_work** work);
/** @} */

#ifdef __cplusplus
}
#endif
