#pragma once

/** @file
 * A group of the module _ringlet for other compiled modules of the process, as a capsule with C functions: they use the library that is
 * inside _ringlet, and are built without it. */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The name of the capsules that `_ringlet.Group.share()` makes. Each owns the ringlet_share that it points to. The number stands for all
 * that is declared here, and is changed with it. */
#define RINGLET_SHARE_CAPSULE "ringlet._ringlet.share.1"

/** Elements without gaps in the CPU's memory, with one of the dtypes of ringlet/c/dtypes.h. Their shapes are not compared between ranks,
 * only dtypes and counts. */
typedef struct ringlet_elements {
  void* data;
  int32_t dtype;
  int64_t count;
} ringlet_elements;

/** What the calling thread's last call failed with. The texts are valid until the thread's next call. */
typedef struct ringlet_share_error {
  const char* name; /**< of the class in ringlet.errors: "PeerLost", ... */
  const char* text; /**< one sentence */
  int32_t rank;     /**< the rank in the world that caused it, or -1 */
} ringlet_share_error;

/** The results of calls. */
enum {
  RINGLET_SHARE_OK = 0,
  RINGLET_SHARE_FAILED = 1, /**< error() says why */
  RINGLET_SHARE_RAISED = 2  /**< a Python exception is set in the calling thread, such as that of Ctrl-C */
};

/** A message that is on its way. */
typedef struct ringlet_sending ringlet_sending;

/** A group, which lives until all that stand for it are freed. Any threads may call its functions at the same time, with or without the
 * interpreter's lock; those that wait for other ranks are to be called without. `stream` is from 0 to 1023, as in Group's calls. */
typedef struct ringlet_share {
  const struct ringlet_share_calls* calls;
} ringlet_share;

typedef struct ringlet_share_calls {
  ringlet_share_error (*error)(void);
  int32_t (*copy)(ringlet_share* share, ringlet_share** copy);
  /** Where it is the last one of its group, this rank leaves, which may wait. */
  void (*free)(ringlet_share* share);
  int32_t (*rank)(const ringlet_share* share);
  int32_t (*size)(const ringlet_share* share);
  /** To be called with the interpreter's lock, which is free while it waits; Ctrl-C ends that. `*part` is NULL for a negative color. */
  int32_t (*split)(ringlet_share* share, int32_t color, int32_t key, int32_t stream, ringlet_share** part);
  /** `op` is RINGLET_SUM, ... `output` is `input` or does not overlap it. */
  int32_t (*all_reduce)(ringlet_share* share, int32_t op, ringlet_elements input, ringlet_elements output, int32_t stream);
  /** `output` has size() times the elements. */
  int32_t (*all_gather)(ringlet_share* share, ringlet_elements input, ringlet_elements output, int32_t stream);
  /** The elements divide by the ranks: `input` has size() times those of `output`. */
  int32_t (*reduce_scatter)(ringlet_share* share, int32_t op, ringlet_elements input, ringlet_elements output, int32_t stream);
  int32_t (*recv)(ringlet_share* share, ringlet_elements output, int32_t source, int32_t stream);
  /** Starts to send; the elements are borrowed until `*sending` has ended. */
  int32_t (*send)(ringlet_share* share, ringlet_elements input, int32_t destination, int32_t stream, ringlet_sending** sending);
  /** Waits at most `timeout_ms`. Sets `*ended`, and then gives the message's own result. */
  int32_t (*sending_wait)(ringlet_sending* sending, int64_t timeout_ms, int32_t* ended);
  /** Waits for its end, which its deadline bounds. */
  void (*sending_free)(ringlet_sending* sending);
} ringlet_share_calls;

#ifdef __cplusplus
}
#endif
