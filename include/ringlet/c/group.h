#pragma once

/** @file
 * Groups, and handles of operations that were started. */

#include <ringlet/c/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A set of ranks that call collectives together. Any threads may call all of its functions at the same time; every rank must start the
 * operations of one stream in the same order. The first failure (a lost rank, a mismatch, a passed deadline) ends all groups that come
 * from the same ringlet_init; every later call then fails with that error. */
typedef struct ringlet_group ringlet_group;

/** An operation that was started. Only one thread at a time may use it. */
typedef struct ringlet_work ringlet_work;

/** The options of every operation. */
typedef struct ringlet_call_options {
  size_t struct_size; /**< set by the function that fills in the defaults */
  int64_t timeout_ms; /**< how long the operation may take from its start; 0: the group's */
  int32_t stream;     /**< operations of one stream run in order, those of two overlap; the same number on every rank; from 0 */
} ringlet_call_options;
/** Fills in the defaults; struct_size must be `sizeof *options`. */
RINGLET_API int32_t ringlet_call_options_init(ringlet_call_options* options, size_t struct_size);

/** The order in which collectives add: whatever is fastest, or that of the ranks whatever the size, so that a sum has the same bits however
 * gradients are divided into buckets or shards. */
enum { RINGLET_ORDER_ANY = 0, RINGLET_ORDER_RANK = 1 };

/** Whether the parts that ranks own in an all-reduce follow the speed of their links: no; as it is measured when the ranks meet and while
 * they train; or as it shows while they train, for those calls whose results have the same bits by even parts. */
enum { RINGLET_PARTS_EVEN = 0, RINGLET_PARTS_MEASURED = 1, RINGLET_PARTS_PASSIVE = 2 };

/** How to form or join a group. An option that is unset comes from the environment variable named beside it. */
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
  int64_t heartbeat_timeout_ms; /**< 0 is unset: RINGLET_HEARTBEAT_TIMEOUT_MS, else 10 s, or 4 s: silence after which a peer is lost */
  int32_t elastic;              /**< 1 or 0; -1 is unset: RINGLET_ELASTIC, else 0: the group survives the loss of ranks; alike on all */
  const char* join;             /**< NULL is unset: RINGLET_JOIN, doors of a group that runs, host:port,...: joins that one */
  const char* door;             /**< NULL is unset: RINGLET_DOOR, host or host:port where processes knock that want to join */
  const char* token;            /**< NULL is unset: RINGLET_TOKEN, then the file RINGLET_TOKEN_FILE; 16 characters at least */
  const char* listen;           /**< NULL is unset: RINGLET_LISTEN, host or host:port where this rank listens */
  const char* advertise;        /**< NULL is unset: RINGLET_ADVERTISE, addresses that the others are told instead of its own, by commas */
  const char* interfaces;       /**< NULL is unset: RINGLET_INTERFACES, "eth0,eth1": only these; "!wlan0": all but these */
  int32_t encrypt;              /**< 1 or 0; -1 is unset: RINGLET_ENCRYPT, else 1 where there is a token; alike on all */
  int32_t guests;               /**< -1 is unset: RINGLET_GUESTS, else 0: how many ranks are browsers */
  int32_t listen_fd;            /**< -1 is unset; a socket that listens at `coordinator`, of rank 0; a duplicate is used */
  /** NULL, or is asked by a thread that waits in ringlet_init or a call of its groups, ten times a second at least, with `context`. Once it
   * does not return 0, the call and all others of the world fail with RINGLET_CANCELLED, on all ranks. It may not call this library. */
  int32_t (*interrupted)(void* context);
  void* interrupted_context; /**< given to it; valid as long as there are groups that come from this ringlet_init */
  int32_t order;             /**< RINGLET_ORDER_...; -1 is unset: RINGLET_ORDER (any, rank), else RINGLET_ORDER_ANY; alike on all */
  const char* trace; /**< NULL is unset: RINGLET_TRACE, the file of a trace of this rank, whose name gets the rank (docs/trace.md) */
  int32_t parts; /**< RINGLET_PARTS_...; -1 is unset: RINGLET_PARTS (even, passive, measured), else RINGLET_PARTS_PASSIVE; alike on all */
} ringlet_init_options;
/** Fills in the defaults; struct_size must be `sizeof *options`. */
RINGLET_API int32_t ringlet_init_options_init(ringlet_init_options* options, size_t struct_size);

/** Returns 1 if the backend ("any" or "tcp"; NULL means "any") can be used on this machine, else 0. Never fails. */
RINGLET_API int32_t ringlet_is_available(const char* backend);

/** Joins or forms the group of all ranks. If nothing is configured, this is a group of one. */
RINGLET_API int32_t ringlet_init(const ringlet_init_options* options, ringlet_group** group);
/** Makes a group of this process alone. */
RINGLET_API int32_t ringlet_group_of_one(ringlet_group** group);
/** Makes another handle of the same group, which must be freed separately. */
RINGLET_API int32_t ringlet_group_copy(const ringlet_group* group, ringlet_group** copy);
/** Frees the handle. When the last handle of a group is freed, its works included, this rank leaves the group. The other ranks notice
 * that only if they still need it: then their operation fails with RINGLET_PEER_LOST. */
RINGLET_API void ringlet_group_free(ringlet_group* group);

/** Gets this process' number in the group, counted from 0. */
RINGLET_API int32_t ringlet_group_rank(const ringlet_group* group, int32_t* rank);
/** Gets the number of ranks in the group. */
RINGLET_API int32_t ringlet_group_size(const ringlet_group* group, int32_t* size);

/** Forms a group of the ranks that give the same `color`, ordered by `key`, then by rank in this group; a negative key stands for that
 * rank. With a negative color this rank is in no group: `*part` becomes NULL, which is no error. Every rank of the group must call it,
 * like a collective of the options' stream. */
RINGLET_API int32_t ringlet_group_split(ringlet_group* group, int32_t color, int32_t key, const ringlet_call_options* options,
                                        ringlet_group** part);

/** Forms a group of these `count` ranks of the group, in this order. They alone call it, all with the same ranks and tag; the others take
 * no part. Calls with the same tag that have members in common come in the same order on all of them; those with different tags, 0 to 1023,
 * may overlap. The options' stream has no meaning. Members whose ranks differ get RINGLET_MISMATCH, and the group stays usable. */
RINGLET_API int32_t ringlet_group_create(ringlet_group* group, const int32_t* ranks, size_t count, int32_t tag,
                                         const ringlet_call_options* options, ringlet_group** part);

/** Gets how often the world was formed anew before this group was made: 0 at first. */
RINGLET_API int32_t ringlet_group_epoch(const ringlet_group* group, uint32_t* epoch);
/** Waits until the ranks that are left have agreed on who goes on, and makes a handle of their world. To be called, by all of them, once a
 * call of an elastic group has failed with RINGLET_PEER_LOST or another error that ends the world, or after ringlet_group_revoke.
 * `ranks_before` is NULL or an array of `capacity` numbers: for each rank of `*next`, its rank in the world of `group`; the first
 * `capacity` of them are written. The options' timeout bounds the wait for their agreement; their stream has no meaning. */
RINGLET_API int32_t ringlet_group_reform(const ringlet_group* group, const ringlet_call_options* options, ringlet_group** next,
                                         int32_t* ranks_before, size_t capacity);
/** Sets `*agreed` to 1 if `mine` is not 0 on all ranks, else to 0: the same on all that are left, even if ranks are lost during the call;
 * the next call then fails. A rank that is left and calls ringlet_group_reform instead counts as 0. */
RINGLET_API int32_t ringlet_group_agree(const ringlet_group* group, int32_t mine, const ringlet_call_options* options, int32_t* agreed);
/** Ends the epoch on all ranks of an elastic group: their calls fail with RINGLET_CANCELLED, and ringlet_group_reform follows. */
RINGLET_API int32_t ringlet_group_revoke(const ringlet_group* group);
/** Leaves the world, also one that is not elastic, without waiting for anybody: calls of this group, its copies and its parts fail with
 * RINGLET_CANCELLED from then on, on this rank; the others get RINGLET_PEER_LOST where they need it. Without this call a rank leaves when
 * the last handle of its groups is freed. */
RINGLET_API int32_t ringlet_group_leave(const ringlet_group* group);

/** Gets where processes knock that are to join an elastic group, "host:port" at this rank, as a text that ends with a zero byte; it is
 * empty if the group is not elastic. RINGLET_INVALID_ARGUMENT if it is longer than `capacity` bytes; 264 are enough. */
RINGLET_API int32_t ringlet_group_door(const ringlet_group* group, char* door, size_t capacity);
/** Admits the processes that knock at the door of any rank: `*next` becomes a handle of the world of the ranks of this one, numbered as
 * they are, and the new ranks behind them; or NULL, which is no error, where nobody knocks, or the new ranks have not been met yet: it
 * never waits for them, so it is called again and again. All ranks of an elastic world call it together, while no operation is pending.
 * `ranks_before` is as in ringlet_group_reform, -1 for a new rank. */
RINGLET_API int32_t ringlet_group_admit(const ringlet_group* group, const ringlet_call_options* options, ringlet_group** next,
                                        int32_t* ranks_before, size_t capacity);

/** For a rank that the others have gone on without, which ringlet_group_reform has said: joins them again by one of their doors, which all
 * ranks of a world know of each other. `*next` becomes a handle of the world in which it is a new rank. It waits for a minute at most, and
 * may be called again after an error. RINGLET_INVALID_ARGUMENT if the others have not gone on without this rank. */
RINGLET_API int32_t ringlet_group_rejoin(const ringlet_group* group, ringlet_group** next);

/** Gets how `operation` ("all_reduce", "broadcast", ...: the functions' names without prefix) moves a buffer of this many bytes:
 * `*algorithm` becomes "exchange", "doubling", "direct", "ring", "hub" or "machines", as it holds for calls from now on. The text is valid
 * for ever. */
RINGLET_API int32_t ringlet_group_algorithm(const ringlet_group* group, const char* operation, size_t bytes, const char** algorithm);

/** Leaves all groups of other ranks that this process has, and waits a moment for the others to read that. This happens by itself at exit;
 * to be called where `interrupted` may not be called any more then. Never fails. */
RINGLET_API void ringlet_leave_all(void);

/** Waits until the operation has ended, and returns its code. May be called again. */
RINGLET_API int32_t ringlet_work_wait(ringlet_work* work);
/** Waits at most `timeout_ms`, 0 or more. If the operation has ended, `*done` becomes 1 and its code is returned. If it still runs,
 * `*done` becomes 0; it is not cancelled. */
RINGLET_API int32_t ringlet_work_wait_for(ringlet_work* work, int64_t timeout_ms, int32_t* done);
/** Sets `*done` to 1 if the operation has ended, in success or failure, else to 0. Does not wait. */
RINGLET_API int32_t ringlet_work_done(const ringlet_work* work, int32_t* done);
/** Is told the code of an operation that has ended; ringlet_error_message and ringlet_error_rank say more, in the same call. */
typedef void (*ringlet_done_function)(void* context, int32_t code);
/** Has `function` called once, when the operation has ended, or soon if it has already; also if the work is freed by then. It runs on a
 * thread that this process has for such calls alone, one after the other, and may call this library; while it blocks, others wait. May be
 * called several times; the functions are called in that order. */
RINGLET_API int32_t ringlet_work_on_done(ringlet_work* work, ringlet_done_function function, void* context);
/** Frees the work. It first waits for the end, because the operation borrows memory; its deadline bounds that. An error that nobody
 * waited for is lost. */
RINGLET_API void ringlet_work_free(ringlet_work* work);

#ifdef __cplusplus
}
#endif
