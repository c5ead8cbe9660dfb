#pragma once

/** @file
 * The functions that a Ringlet module exports to JavaScript, as `Module._ringlet_...`. The package in wasm/src is built on them, and
 * programs use the package. They must be called from one thread.
 *
 * - Text is UTF-8 and ends with a zero byte. Pointers refer to the module's memory, which may grow during any call, so JavaScript must make
 * its views anew after each call.
 * - A function that can fail returns 0 or a code of ringlet/c/base.h (`RINGLET_MISMATCH`, ...). One that makes something returns its
 * handle, which is above 0, or the negated code. ringlet_error_text() and ringlet_error_rank() then tell more, until the next call.
 * - A function that takes time has a `ticket`: any number of the caller's choice. If the function returned success, the host's `completed`
 * is called exactly once with that ticket, never inside the call. Until then the elements that it was given are borrowed; `counts` and
 * shapes are read only during the call.
 * - Operations of one `stream` (0 to 1023) run in the order of the calls, and those of two streams overlap; every rank must make the same
 * calls in the same order. A `timeout_ms` of 0 means the world's.
 * - The first failure ends the world with all its groups: all pending and all later tickets complete with it.
 *
 * imports.js lists the functions that JavaScript must provide. */

#include "wasm/cpp/export.hpp"

// ---- errors and memory

/// Returns one sentence about the last call if it failed, else "". Never fails.
RINGLET_EXPORT const char* ringlet_error_text();
/// Returns the rank, counted in the world, that caused the failure; -1 if none is known. Never fails.
RINGLET_EXPORT int32_t ringlet_error_rank();
/// Allocates `bytes` of memory, aligned to 16 bytes; null if memory is short. ringlet_release() frees it.
RINGLET_EXPORT void* ringlet_allocate(size_t bytes);
RINGLET_EXPORT void ringlet_release(void* memory);
/// Converts elements, out[i] = in[i], between f16, bf16, f32 and f64, rounded to nearest even. The arrays must not overlap.
RINGLET_EXPORT int32_t ringlet_cast(int32_t to_dtype, void* out, int32_t from_dtype, const void* in, size_t count);

// ---- joining and leaving

/// Joins the world whose rank 0 listens at host:port. `token` is empty if the world has none; `name` is for people ("Chromium on Linux").
/// Times of 0 mean the defaults: 60 s until all ranks are there, 10 min for an operation. The world itself decides after how much silence a
/// rank is lost. `encrypt` says whether links are encrypted, and must be the same on all ranks of the world; if negative, they are
/// encrypted if there is a token. Returns the world's handle. While it waits, the host's `seat` is called. It completes with the group of
/// all ranks as value.
RINGLET_EXPORT int32_t ringlet_join(int32_t ticket, const char* host, int32_t port, const char* token, const char* name,
                                    int32_t connect_timeout_ms, int32_t operation_timeout_ms, int32_t encrypt);
/// Leaves the world and closes its links; also ends joining. Pending operations end as RINGLET_CANCELLED. When it has completed, the
/// handles of the world and of its groups are invalid.
RINGLET_EXPORT int32_t ringlet_leave(int32_t ticket, int32_t world);
/// Makes a world of this rank alone; ringlet_world_group() returns the handle of its group. Never waits.
RINGLET_EXPORT int32_t ringlet_world_of_one();
RINGLET_EXPORT int32_t ringlet_world_group(int32_t world);
/// Return the bytes that have passed over the world's links so far, without the framing of WebSockets. Never fail.
RINGLET_EXPORT double ringlet_bytes_sent(int32_t world);
RINGLET_EXPORT double ringlet_bytes_received(int32_t world);

// ---- worlds of elastic groups

/// Return how often such a world was formed anew before this one, and its lineage as decimal text; 0 for other worlds. The text is valid
/// until the next call. Never fail.
RINGLET_EXPORT double ringlet_world_epoch(int32_t world);
RINGLET_EXPORT const char* ringlet_world_lineage(int32_t world);
/// Returns where processes knock at a native rank, "host:port", which stays the same in all worlds of its process; "" if that is unknown.
/// Valid until the next call. Never fails.
RINGLET_EXPORT const char* ringlet_world_door(int32_t world, int32_t rank);
/// Ends the epoch on all ranks, as RINGLET_CANCELLED (Group::revoke in C++); does nothing to a world that has ended.
RINGLET_EXPORT int32_t ringlet_revoke(int32_t world);
/// Returns 0 as long as the world goes on, else why it has ended.
RINGLET_EXPORT int32_t ringlet_world_failure(int32_t world);

// ---- groups

/// Never fail; return -1 if the handle belongs to no group.
RINGLET_EXPORT int32_t ringlet_group_rank(int32_t group);
RINGLET_EXPORT int32_t ringlet_group_size(int32_t group);
/// Returns the rank in the world of a rank of the group.
RINGLET_EXPORT int32_t ringlet_group_world_rank(int32_t group, int32_t rank);
/// Returns the rank that is `offset` places further along the group's ring, which begins at rank 0; -1 if there is none.
RINGLET_EXPORT int32_t ringlet_group_along_ring(int32_t group, int32_t rank, int32_t offset);
/// Returns a sentence for people that says which algorithms the group chooses; valid until the next call. Null if there is no such group.
RINGLET_EXPORT const char* ringlet_group_placement(int32_t group);
/// The vote of an elastic group (Group::agree in C++), of which `group` has all ranks. `trains` is 1 where it is that of an
/// ElasticTrainer. Completes with 1 if all ranks say yes, else with 0.
RINGLET_EXPORT int32_t ringlet_vote(int32_t ticket, int32_t group, int32_t timeout_ms, int32_t mine, int32_t trains);
/// Completes with the new group as value, or with 0 if `color` is negative. A negative key stands for the rank in the group.
RINGLET_EXPORT int32_t ringlet_split(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t color, int32_t key);
/// Leaves a group, which must have no pending operation; its handle is then invalid.
RINGLET_EXPORT int32_t ringlet_group_leave(int32_t group);
/// Returns how an operation ("all_reduce", ...) moves a buffer of this many bytes: "exchange", "doubling", "direct", "ring" or "hub";
/// null if there is no such operation.
RINGLET_EXPORT const char* ringlet_group_algorithm(int32_t group, const char* operation, size_t bytes);

// ---- collectives

/// Starts any collective: `form`, `op` and `dtype` are numbers of core/plan/collective_table.hpp and ringlet/dtype.hpp, which the package
/// has in tables.ts. A buffer has a number of rows (axis 0) of `row_elements` elements each; ringlet/group.hpp says which buffers a form
/// has, and which of them may be the same or overlap. A buffer that is changed in place (broadcast) is the output. Null stands for a buffer
/// that this rank does not have, and for counts that the form does not have; `counts` is also used for the send counts. Arguments that the
/// form does not have are ignored, but `op` and `dtype` must be existing numbers.
RINGLET_EXPORT int32_t ringlet_collective(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t form, int32_t op,
                                          int32_t dtype, const void* input, size_t input_rows, void* output, size_t output_rows,
                                          size_t row_elements, const uint32_t* counts, const uint32_t* receive_counts, int32_t root);

// ---- messages

/// Messages from rank to rank, matched in order per (rank, stream). If the other side has another dtype or shape, both get
/// RINGLET_MISMATCH, and the group stays usable.
RINGLET_EXPORT int32_t ringlet_send(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t dtype, const void* values,
                                    const uint32_t* shape, int32_t axes, int32_t destination);
RINGLET_EXPORT int32_t ringlet_receive(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t dtype, void* values,
                                       const uint32_t* shape, int32_t axes, int32_t source);

// ---- gradients
// A tree names tensors in the module's memory, which it does not own; names and order must be the same on every rank. Each of these
// operations consists of several collectives: until one has completed, nothing else may be started on its stream in its groups. The trees
// may be released when the call has returned; the tensors' memory is borrowed until the operation has completed.

RINGLET_EXPORT int32_t ringlet_tree();
RINGLET_EXPORT int32_t ringlet_tree_add(int32_t tree, const char* name, int32_t dtype, void* data, const uint32_t* shape, int32_t axes);
/// Averages gradients in place. `all_reduce_size` (bytes) has the meaning of ringlet/average_options.hpp. `wire` is a dtype,
/// kFirstBlockFormat + a BlockFormat, or -1 for each tensor's own dtype; of blocks `feedback` and `least_elements` are those of
/// ringlet/wire.hpp. `weight` is this rank's share; NaN on all ranks means the plain mean. `total_weight` is the sum of all ranks' weights
/// where all know it, else NaN.
RINGLET_EXPORT int32_t ringlet_average_gradients(int32_t ticket, int32_t group, int32_t stream, int32_t tree, double all_reduce_size,
                                                 int32_t wire, double weight, double total_weight, int32_t feedback, double least_elements);

/// Makes an optimizer. `formula` is a class of ringlet/optimizers.hpp ("SGD", "AdamW", ...), `numbers` its options in their order there,
/// without state_dtype; missing ones have their defaults. A `state_dtype` of -1 means the gradient's own.
RINGLET_EXPORT int32_t ringlet_optimizer(const char* formula, double learning_rate, const double* numbers, int32_t count,
                                         int32_t state_dtype);
RINGLET_EXPORT int32_t ringlet_optimizer_set_learning_rate(int32_t optimizer, double learning_rate);
/// Takes one step on this rank alone.
RINGLET_EXPORT int32_t ringlet_optimizer_apply(int32_t optimizer, int32_t gradients, int32_t parameters);

/// Returns the bytes of the optimizer's state; NaN if the handle belongs to no optimizer.
RINGLET_EXPORT double ringlet_optimizer_state_bytes(int32_t optimizer);

/// Makes an FSDP object over `group` with the options of ringlet/fsdp.hpp. `replicas` is the group of the ranks that hold the same shard,
/// or 0. A `max_norm` of NaN means no clipping. `reduce_dtype`, `feedback` and `least_elements` are those of a wire as in
/// ringlet_average_gradients(), whose dtype may be any floating one. `shard_weights` has one number per rank of the group, or is null.
RINGLET_EXPORT int32_t ringlet_fsdp(int32_t group, int32_t replicas, double communication_size, double max_norm, int32_t reduce_dtype,
                                    const double* shard_weights, int32_t feedback, double least_elements);
/// Takes a step on full parameters: averages the gradients into shards, lets the optimizer change this rank's rows, and gathers the other
/// rows. Only one step may be under way at a time.
RINGLET_EXPORT int32_t ringlet_fsdp_apply(int32_t ticket, int32_t fsdp, int32_t stream, int32_t gradients, int32_t parameters,
                                          int32_t optimizer);
/// Returns the gradients' norm before clipping in the last step; NaN if nothing is clipped.
RINGLET_EXPORT double ringlet_fsdp_norm(int32_t fsdp);

/// Makes the states of all ranks that train equal (core/elastic/state_sync.hpp), and returns a handle of what comes out, which may be asked
/// once it has completed: whether this rank's tensors were overwritten, also where it has failed; how many steps are committed; and the
/// text of the values, until the handle is released. `lacks` says whether this rank has no state.
RINGLET_EXPORT int32_t ringlet_sync(int32_t ticket, int32_t group, int32_t stream, int32_t tree, const char* values, int32_t lacks,
                                    double step);
RINGLET_EXPORT int32_t ringlet_sync_takes(int32_t sync);
RINGLET_EXPORT double ringlet_sync_step(int32_t sync);
RINGLET_EXPORT const char* ringlet_sync_values(int32_t sync);

/// Releases a tree, an optimizer, an FSDP object or what ringlet_sync() returned. Nothing under way may use it.
RINGLET_EXPORT int32_t ringlet_object_release(int32_t object);
