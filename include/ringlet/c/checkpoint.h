#pragma once

/** @file
 * Checkpoints that any number of ranks can load. */

#include <ringlet/c/fsdp.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What is saved, or loaded into: tensors in the caller's memory and values of its own. Every rank adds the same names in the same order.
 * The tensors' elements are borrowed whenever it is saved or loaded. */
typedef struct ringlet_checkpoint ringlet_checkpoint;
/** Makes one with nothing in it. */
RINGLET_API int32_t ringlet_checkpoint_create(ringlet_checkpoint** checkpoint);
/** Frees it; what was saved stays. */
RINGLET_API void ringlet_checkpoint_free(ringlet_checkpoint* checkpoint);
/** Tensors that every rank holds whole and that are equal on all ranks; they are called "name.leaf". */
RINGLET_API int32_t ringlet_checkpoint_add(ringlet_checkpoint* checkpoint, const char* name, const ringlet_named_tensor* tensors,
                                           size_t count);
/** This rank's shards of tensors that `layout` splits over the group. */
RINGLET_API int32_t ringlet_checkpoint_add_sharded(ringlet_checkpoint* checkpoint, const char* name, const ringlet_named_tensor* shards,
                                                   size_t count, const ringlet_shard_layout* layout);
/** An optimizer's state: "parameter.slot", each of the shape of this rank's shard of "parameter" in `layout`. */
RINGLET_API int32_t ringlet_checkpoint_add_slots(ringlet_checkpoint* checkpoint, const char* name, const ringlet_named_tensor* slots,
                                                 size_t count, const ringlet_shard_layout* layout);
/** Sets a value, equal on all ranks when it is saved. */
/** @{ */
RINGLET_API int32_t ringlet_checkpoint_set_int(ringlet_checkpoint* checkpoint, const char* name, int64_t value);
RINGLET_API int32_t ringlet_checkpoint_set_double(ringlet_checkpoint* checkpoint, const char* name, double value);
RINGLET_API int32_t ringlet_checkpoint_set_text(ringlet_checkpoint* checkpoint, const char* name, const char* value);
/** @} */
/** Gets a value. RINGLET_INVALID_ARGUMENT where there is none of that name, or one of another type. A text is valid until the checkpoint's
 * next call. */
/** @{ */
RINGLET_API int32_t ringlet_checkpoint_get_int(const ringlet_checkpoint* checkpoint, const char* name, int64_t* value);
RINGLET_API int32_t ringlet_checkpoint_get_double(const ringlet_checkpoint* checkpoint, const char* name, double* value);
RINGLET_API int32_t ringlet_checkpoint_get_text(const ringlet_checkpoint* checkpoint, const char* name, const char** value);
/** @} */

/** Saves below `directory` as this step, keeping that many checkpoints with this one (at least 1). What was saved before stays loadable
 * until this one is safe on all disks. Collective; on every rank alike RINGLET_IO_ERROR where one cannot write, and RINGLET_MISMATCH where
 * the ranks do not save the same: then nothing has changed, and the group lives on. */
RINGLET_API int32_t ringlet_checkpoint_save(ringlet_checkpoint* checkpoint, ringlet_group* group, const char* directory, uint64_t step,
                                            int32_t keep, const ringlet_call_options* options);
/** Fills tensors and values from the newest checkpoint that is whole, or, where `step` is not NULL, from that step's. `*found` becomes 1
 * and
 * `*loaded_step` the step; 0 where there is no checkpoint yet. Collective. Number of ranks and sharding may differ from when it was saved.
 * On every rank alike, before any tensor is written: RINGLET_IO_ERROR for a file that is missing or damaged, RINGLET_MISMATCH where names,
 * dtypes or shapes are not those that were saved. */
RINGLET_API int32_t ringlet_checkpoint_load(ringlet_checkpoint* checkpoint, ringlet_group* group, const char* directory,
                                            const uint64_t* step, const ringlet_call_options* options, int32_t* found,
                                            uint64_t* loaded_step);

#ifdef __cplusplus
}
#endif
