#pragma once

/** @file
 * Messages between two ranks of a group. Each call returns when it has ended; its `_async` form returns once it is started: the tensor's
 * elements are then borrowed until the work has ended. `options` may be NULL. */

#include <ringlet/c/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A message to one rank, matched in order per (source, stream). It ends once the receiver has matched it and its bytes have left; so two
 * ranks that both send first use the async form. Another dtype or shape on the receiving side is RINGLET_MISMATCH on both, and the group
 * lives on. */
/** @{ */
RINGLET_API int32_t ringlet_send(ringlet_group* group, const ringlet_tensor* values, int32_t destination,
                                 const ringlet_call_options* options);
RINGLET_API int32_t ringlet_send_async(ringlet_group* group, const ringlet_tensor* values, int32_t destination,
                                       const ringlet_call_options* options, ringlet_work** work);
RINGLET_API int32_t ringlet_recv(ringlet_group* group, const ringlet_tensor* values, int32_t source, const ringlet_call_options* options);
RINGLET_API int32_t ringlet_recv_async(ringlet_group* group, const ringlet_tensor* values, int32_t source,
                                       const ringlet_call_options* options, ringlet_work** work);
/** @} */

#ifdef __cplusplus
}
#endif
