#pragma once

/** @file
 * Messages between two ranks of a group. Each call returns when it has ended; its `_async` form returns once it is started: the tensor's
 * elements are then borrowed until the work has ended. `options` may be NULL. */

#include <ringlet/c/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A message to one rank. Messages are matched in order per (source, stream). Sending ends once the receiver has matched the message and
 * its bytes have left; so two ranks that both send first must use the async form. If dtype or shape differ on the receiving side, both
 * get RINGLET_MISMATCH, and the group stays usable. */
/** @{ */
RINGLET_API int32_t ringlet_send(ringlet_group* group, const ringlet_tensor* values, int32_t destination,
                                 const ringlet_call_options* options);
RINGLET_API int32_t ringlet_send_async(ringlet_group* group, const ringlet_tensor* values, int32_t destination,
                                       const ringlet_call_options* options, ringlet_work** work);
RINGLET_API int32_t ringlet_recv(ringlet_group* group, const ringlet_tensor* values, int32_t source, const ringlet_call_options* options);
RINGLET_API int32_t ringlet_recv_async(ringlet_group* group, const ringlet_tensor* values, int32_t source,
                                       const ringlet_call_options* options, ringlet_work** work);
/** @} */

/** Receives from whichever rank has sent a message of the stream that no ringlet_recv from that rank waits for; `*source` becomes that
 * rank. Where several have, they take turns; a ringlet_recv from a rank goes before, also if it was called later. `*source` is written
 * before the work has ended. */
/** @{ */
RINGLET_API int32_t ringlet_recv_any(ringlet_group* group, const ringlet_tensor* values, int32_t* source,
                                     const ringlet_call_options* options);
RINGLET_API int32_t ringlet_recv_any_async(ringlet_group* group, const ringlet_tensor* values, int32_t* source,
                                           const ringlet_call_options* options, ringlet_work** work);
/** @} */

#ifdef __cplusplus
}
#endif
