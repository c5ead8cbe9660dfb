#pragma once

/** @file
 * Groups, and handles of operations that were started. */

#include <ringlet/c/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A set of ranks that call collectives together. All functions may be called from any threads at the same time; every rank must start the
 * operations of one stream in the same order. The first failure (a lost rank, a mismatch, a passed deadline) ends all groups that come from
 * the same ringlet_init; every later call then fails with that error. */
typedef struct ringlet_group ringlet_group;

/** An operation that was started. One thread at a time. */
typedef struct ringlet_work ringlet_work;

/** Of every operation. */
typedef struct ringlet_call_options {
  size_t struct_size; /**< set by the function that fills in the defaults */
  int64_t timeout_ms; /**< how long the operation may take from its start; 0: the group's */
  int32_t stream;     /**< operations of one stream run in order, those of two overlap; the same number on every rank; from 0 */
} ringlet_call_options;
/** Fills in the defaults; struct_size is `sizeof *options`. */
RINGLET_API int32_t ringlet_call_options_init(ringlet_call_options* options, size_t struct_size);

/** How to form or join a group. What is unset comes from the environment variable named beside it. */
typedef struct ringlet_init_options {
  size_t struct_size;           /**< set by the function that fills in the defaults */
  int32_t strict;               /**< not 0: an error that says what is missing, instead of a group of one, where nothing is configured */
  int32_t rank;                 /**< -1 is unset: RINGLET_RANK, then MLX_RANK */
  int32_t world_size;           /**< -1 is unset: RINGLET_WORLD_SIZE */
  const char* backend;          /**< NULL or "any", "tcp" */
  const char* coordinator;      /**< NULL is unset: RINGLET_COORDINATOR, host:port where rank 0 listens */
  const char* hostfile;         /**< NULL is unset: RINGLET_HOSTFILE, then MLX_HOSTFILE */
  int64_t connect_timeout_ms;   /**< 0 is unset: RINGLET_CONNECT_TIMEOUT_MS, else 60 s: all ranks must have met by then */
  int64_t operation_timeout_ms; /**< 0 is unset: RINGLET_TIMEOUT_MS, else 10 min: of an operation, from its start */
  int64_t heartbeat_timeout_ms; /**< 0 is unset: RINGLET_HEARTBEAT_TIMEOUT_MS, else 10 s: silence after which a peer is lost */
} ringlet_init_options;
/** Fills in the defaults; struct_size is `sizeof *options`. */
RINGLET_API int32_t ringlet_init_options_init(ringlet_init_options* options, size_t struct_size);

/** 1 where the backend ("any", "tcp"; NULL is "any") can be used here, else 0. Never fails. */
RINGLET_API int32_t ringlet_is_available(const char* backend);

/** Joins or forms the group of all ranks. With nothing configured: a group of one. */
RINGLET_API int32_t ringlet_init(const ringlet_init_options* options, ringlet_group** group);
/** A group of this process alone. */
RINGLET_API int32_t ringlet_group_of_one(ringlet_group** group);
/** Another handle of the same group, freed by itself. */
RINGLET_API int32_t ringlet_group_copy(const ringlet_group* group, ringlet_group** copy);
/** When the last handle of a group goes, its works included, this rank leaves the group. The others notice only if they still need it:
 * then their operation fails with RINGLET_PEER_LOST. */
RINGLET_API void ringlet_group_free(ringlet_group* group);

/** This process' number in the group, from 0. */
RINGLET_API int32_t ringlet_group_rank(const ringlet_group* group, int32_t* rank);
/** How many ranks the group has. */
RINGLET_API int32_t ringlet_group_size(const ringlet_group* group, int32_t* size);

/** Forms a group of the ranks that give the same `color`, ordered by `key`, then by rank in this group; a negative key stands for that
 * rank. With a negative colour this rank is in no group: `*part` becomes NULL, and that is no error. Every rank of the group calls it, as a
 * collective of the options' stream. */
RINGLET_API int32_t ringlet_group_split(ringlet_group* group, int32_t color, int32_t key, const ringlet_call_options* options,
                                        ringlet_group** part);

/** How `operation` ("all_reduce", "broadcast", ...: the functions' names without prefix) moves a buffer of this many bytes: `*algorithm`
 * becomes "exchange", "doubling", "direct", "ring" or "leaves", valid for ever. */
RINGLET_API int32_t ringlet_group_algorithm(const ringlet_group* group, const char* operation, size_t bytes, const char** algorithm);

/** Waits for the end and returns the operation's code. May be called again. */
RINGLET_API int32_t ringlet_work_wait(ringlet_work* work);
/** Waits at most `timeout_ms`, 0 or more. `*done` becomes 1 where the operation has ended, whose code is then returned, and 0 where it
 * still runs; it is not cancelled. */
RINGLET_API int32_t ringlet_work_wait_for(ringlet_work* work, int64_t timeout_ms, int32_t* done);
/** `*done` becomes 1 where the operation has ended, in success or failure, else 0. Does not wait. */
RINGLET_API int32_t ringlet_work_done(const ringlet_work* work, int32_t* done);
/** Waits for the end first, because the operation borrows memory; its deadline bounds that. An error that nobody waited for is lost. */
RINGLET_API void ringlet_work_free(ringlet_work* work);

#ifdef __cplusplus
}
#endif
