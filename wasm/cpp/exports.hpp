#pragma once

/** @file
 * What a module of Ringlet's gives to JavaScript: `Module._ringlet_...`. The package in wasm/src is written against this, and programs use
 * the package. One thread.
 *
 * - Text is UTF-8 and ends with a zero. Pointers go into the module's memory, which may grow during any call: JavaScript makes its views
 * anew.
 * - A function that can fail returns 0, or a code of ringlet/c/base.h (`RINGLET_MISMATCH`, ...). One that makes something returns its
 * handle, above 0, or the code with a minus. ringlet_error_text() and ringlet_error_rank() then say more, until the next call.
 * - What takes time has a `ticket`: any number of the caller's. When it returned success, the host's `completed` is called exactly once
 * with that ticket, never inside the call. Until then it borrows the elements that it was given; `counts` and shapes are read during the
 * call.
 * - Operations of one `stream` (0 to 1023) run in the order of the calls, those of two streams overlap; every rank calls the same ones in
 * the same order. `timeout_ms` 0: the world's.
 * - The first failure ends the world with all its groups: all pending and all later tickets complete with it.
 *
 * What the module asks of JavaScript is in imports.js. */

#include "wasm/cpp/export.hpp"

// ---- errors and memory

/// One sentence about the last call that failed; "" where it did not. Never fails.
RINGLET_EXPORT const char* ringlet_error_text();
/// The culprit's rank in the world; -1 where none is known. Never fails.
RINGLET_EXPORT int32_t ringlet_error_rank();
/// `bytes` of memory, aligned to 16; null where there is no more. ringlet_release() gives it back.
RINGLET_EXPORT void* ringlet_allocate(size_t bytes);
RINGLET_EXPORT void ringlet_release(void* memory);
/// out[i] = in[i] in another dtype of f16, bf16, f32, f64, rounded to nearest even. The arrays do not overlap.
RINGLET_EXPORT int32_t ringlet_cast(int32_t to_dtype, void* out, int32_t from_dtype, const void* in, size_t count);

// ---- joining and leaving

/// Joins the world whose rank 0 listens at host:port. `token` is empty where the world has none; `name` is for people ("Chromium on
/// Linux"). Times of 0 are the defaults: 60 s until all ranks are there, 10 min for an operation. How much silence loses a rank is the
/// world's own. `encrypt`: whether what goes over the links is encrypted, as for all ranks of the world; negative: where there is a token.
/// Returns the world's handle. While it waits the host's `seat` is called; completes with the group of all ranks as value.
RINGLET_EXPORT int32_t ringlet_join(int32_t ticket, const char* host, int32_t port, const char* token, const char* name,
                                    int32_t connect_timeout_ms, int32_t operation_timeout_ms, int32_t encrypt);
/// Takes leave of the others and closes the links; also ends joining. What is pending ends as RINGLET_CANCELLED. The handles of the world
/// and its groups are void when it has completed.
RINGLET_EXPORT int32_t ringlet_leave(int32_t ticket, int32_t world);
/// A world of this rank alone; the value of `group` is that of its group. Never waits.
RINGLET_EXPORT int32_t ringlet_world_of_one();
RINGLET_EXPORT int32_t ringlet_world_group(int32_t world);
/// Bytes that have passed over the world's links so far, counted without WebSocket's own. Never fails.
RINGLET_EXPORT double ringlet_bytes_sent(int32_t world);
RINGLET_EXPORT double ringlet_bytes_received(int32_t world);

// ---- groups

/// Never fail; -1 for a handle that is no group.
RINGLET_EXPORT int32_t ringlet_group_rank(int32_t group);
RINGLET_EXPORT int32_t ringlet_group_size(int32_t group);
/// The rank in the world of a rank of the group.
RINGLET_EXPORT int32_t ringlet_group_world_rank(int32_t group, int32_t rank);
/// The rank that stands `offset` places further along the group's ring, which begins at rank 0; -1 where there is none.
RINGLET_EXPORT int32_t ringlet_group_along_ring(int32_t group, int32_t rank, int32_t offset);
/// How the group moves what has more than one way, a sentence for people; until the next call. Null where there is no such group.
RINGLET_EXPORT const char* ringlet_group_placement(int32_t group);
/// Completes with the new group as value, or 0 where `color` is negative. A negative key: the rank in the group.
RINGLET_EXPORT int32_t ringlet_split(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t color, int32_t key);
/// Leaves a group, in which no operation may be pending; its handle is void then.
RINGLET_EXPORT int32_t ringlet_group_leave(int32_t group);
/// How a buffer of this many bytes is moved by "all_reduce", ...: "exchange", "doubling", "direct", "ring", "leaves"; null where there is
/// no such operation.
RINGLET_EXPORT const char* ringlet_group_algorithm(int32_t group, const char* operation, size_t bytes);

// ---- collectives

/// Any collective: `form`, `op` and `dtype` are numbers of core/plan/collective_table.hpp and ringlet/dtype.hpp, which the package has in
/// tables.ts. A buffer is so many rows (axis 0) of `row_elements`; which buffers a form has and which of them may be the same or overlap is
/// as in ringlet/group.hpp. One that is changed in place (broadcast) is the output. Null stands for a buffer that this rank has not, and
/// for counts that the form has not; `counts` are also those of what is sent. What a form does not have is not looked at, but `op` and
/// `dtype` must be numbers that exist.
RINGLET_EXPORT int32_t ringlet_collective(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t form, int32_t op,
                                          int32_t dtype, const void* input, size_t input_rows, void* output, size_t output_rows,
                                          size_t row_elements, const uint32_t* counts, const uint32_t* receive_counts, int32_t root);

// ---- messages

/// Point to point, matched in order per (rank, stream). Another dtype or shape there is RINGLET_MISMATCH on both sides, and the group lives
/// on.
RINGLET_EXPORT int32_t ringlet_send(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t dtype, const void* values,
                                    const uint32_t* shape, int32_t axes, int32_t destination);
RINGLET_EXPORT int32_t ringlet_receive(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t dtype, void* values,
                                       const uint32_t* shape, int32_t axes, int32_t source);

// ---- gradients
// A tree names tensors in the module's memory, which it does not own; names and order are the same on every rank. These operations are
// several collectives each: until one has completed, nothing else may be started on its stream in its groups. The trees may be released as
// soon as the call has returned, the tensors' memory is borrowed until it has completed.

RINGLET_EXPORT int32_t ringlet_tree();
RINGLET_EXPORT int32_t ringlet_tree_add(int32_t tree, const char* name, int32_t dtype, void* data, const uint32_t* shape, int32_t axes);
/// Averages in place. `all_reduce_size` (bytes) and `communication_dtype` (-1: each tensor's own) are as in ringlet/average_options.hpp;
/// `weight` is this rank's share, NaN on all ranks: the plain mean.
RINGLET_EXPORT int32_t ringlet_average_gradients(int32_t ticket, int32_t group, int32_t stream, int32_t tree, double all_reduce_size,
                                                 int32_t communication_dtype, double weight);

/// `formula` is a class of ringlet/optimizers.hpp ("SGD", "AdamW", ...), `numbers` its options in their order there, without state_dtype;
/// those that are missing have their defaults. `state_dtype` -1: the gradient's own.
RINGLET_EXPORT int32_t ringlet_optimizer(const char* formula, double learning_rate, const double* numbers, int32_t count,
                                         int32_t state_dtype);
RINGLET_EXPORT int32_t ringlet_optimizer_set_learning_rate(int32_t optimizer, double learning_rate);
/// One step on this rank alone.
RINGLET_EXPORT int32_t ringlet_optimizer_apply(int32_t optimizer, int32_t gradients, int32_t parameters);

/// Bytes of the state that it keeps; NaN for a handle that is none.
RINGLET_EXPORT double ringlet_optimizer_state_bytes(int32_t optimizer);

/// FSDP over `group` with the options of ringlet/fsdp.hpp. `replicas`: the group of the ranks that hold the same shard, or 0. `max_norm`
/// NaN: nothing is clipped. `reduce_dtype` -1: each gradient's own. `shard_weights`: one per rank of the group, or null.
RINGLET_EXPORT int32_t ringlet_fsdp(int32_t group, int32_t replicas, double communication_size, double max_norm, int32_t reduce_dtype,
                                    const double* shard_weights);
/// Takes a step on full parameters: averages the gradients into shards, lets the optimizer change this rank's rows, gathers the rest. One
/// step at a time.
RINGLET_EXPORT int32_t ringlet_fsdp_apply(int32_t ticket, int32_t fsdp, int32_t stream, int32_t gradients, int32_t parameters,
                                          int32_t optimizer);
/// The gradients' norm before clipping, of the last step; NaN where nothing is clipped.
RINGLET_EXPORT double ringlet_fsdp_norm(int32_t fsdp);

/// Of a tree, an optimizer or an fsdp, which nothing that is under way uses.
RINGLET_EXPORT int32_t ringlet_object_release(int32_t object);
