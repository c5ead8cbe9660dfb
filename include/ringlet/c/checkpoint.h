#pragma once

/** @file
 * Checkpoints, which any number of ranks can load. */

#include <ringlet/c/fsdp.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The contents to save or to load into: tensors in the caller's memory, and values that the checkpoint holds itself. Every rank must
 * add the same names in the same order. The tensors' elements are borrowed during each save and load. */
typedef struct ringlet_checkpoint ringlet_checkpoint;
/** Makes an empty checkpoint. */
RINGLET_API int32_t ringlet_checkpoint_create(ringlet_checkpoint** checkpoint);
/** Frees the checkpoint; saved files stay. */
RINGLET_API void ringlet_checkpoint_free(ringlet_checkpoint* checkpoint);
/** Adds tensors that every rank holds completely and that are equal on all ranks; their names become "name.leaf". */
RINGLET_API int32_t ringlet_checkpoint_add(ringlet_checkpoint* checkpoint, const char* name, const ringlet_named_tensor* tensors,
                                           size_t count);
/** Adds this rank's shards of tensors that `layout` splits over the group. */
RINGLET_API int32_t ringlet_checkpoint_add_sharded(ringlet_checkpoint* checkpoint, const char* name, const ringlet_named_tensor* shards,
                                                   size_t count, const ringlet_shard_layout* layout);
/** Adds an optimizer's state: tensors named "parameter.slot", each with the shape of this rank's shard of "parameter" in `layout`. */
RINGLET_API int32_t ringlet_checkpoint_add_slots(ringlet_checkpoint* checkpoint, const char* name, const ringlet_named_tensor* slots,
                                                 size_t count, const ringlet_shard_layout* layout);
/** Sets a value, which must be equal on all ranks when it is saved. */
/** @{ */
RINGLET_API int32_t ringlet_checkpoint_set_int(ringlet_checkpoint* checkpoint, const char* name, int64_t value);
RINGLET_API int32_t ringlet_checkpoint_set_double(ringlet_checkpoint* checkpoint, const char* name, double value);
RINGLET_API int32_t ringlet_checkpoint_set_text(ringlet_checkpoint* checkpoint, const char* name, const char* value);
/** @} */
/** Gets a value. RINGLET_INVALID_ARGUMENT if there is none of that name, or one of another type. A text is valid until the checkpoint's
 * next call. */
/** @{ */
RINGLET_API int32_t ringlet_checkpoint_get_int(const ringlet_checkpoint* checkpoint, const char* name, int64_t* value);
RINGLET_API int32_t ringlet_checkpoint_get_double(const ringlet_checkpoint* checkpoint, const char* name, double* value);
RINGLET_API int32_t ringlet_checkpoint_get_text(const ringlet_checkpoint* checkpoint, const char* name, const char** value);
/** @} */

/** Saves the contents as this step in a folder below `directory`, and keeps the newest `keep` checkpoints (at least 1), this one
 * included. Earlier checkpoints stay loadable until this one is safe on all disks. Collective. On every rank alike it returns
 * RINGLET_IO_ERROR if a rank cannot write, or RINGLET_MISMATCH if the ranks do not save the same; in both cases nothing has changed, and
 * the group stays usable. */
RINGLET_API int32_t ringlet_checkpoint_save(ringlet_checkpoint* checkpoint, ringlet_group* group, const char* directory, uint64_t step,
                                            int32_t keep, const ringlet_call_options* options);
/** Fills tensors and values from the newest complete checkpoint, or from that of `*step` if `step` is not NULL. `*found` becomes 1 and
 * `*loaded_step` the step; `*found` becomes 0 if there is no checkpoint yet. Collective. The number of ranks and the sharding may differ
 * from those at the time of saving. On every rank alike, and before any tensor is written, it returns RINGLET_IO_ERROR if a file is
 * missing or damaged, or RINGLET_MISMATCH if names, dtypes or shapes differ from the saved ones. */
RINGLET_API int32_t ringlet_checkpoint_load(ringlet_checkpoint* checkpoint, ringlet_group* group, const char* directory,
                                            const uint64_t* step, const ringlet_call_options* options, int32_t* found,
                                            uint64_t* loaded_step);

#ifdef __cplusplus
}
#endif
