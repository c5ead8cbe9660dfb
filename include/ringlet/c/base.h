#pragma once

/** @file
 * Result codes, errors and tensors. */

#include <ringlet/c/dtypes.h>
#include <ringlet/c/language.h>
#include <stddef.h>
#include <stdint.h>

/** Marks the functions that the shared library exports. */
#if defined(_WIN32)
#define RINGLET_API
#else
#define RINGLET_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The results of functions, returned as int32_t. Later versions may add codes. */
enum {
  RINGLET_OK = 0,
  RINGLET_INVALID_ARGUMENT = 1, /**< the caller's mistake; found before any byte moved */
  RINGLET_MISMATCH = 2,         /**< ranks disagree about a call */
  RINGLET_PEER_LOST = 3,        /**< a rank died, was cut off, or left */
  RINGLET_TIMED_OUT = 4,        /**< a deadline passed */
  RINGLET_PROTOCOL_ERROR = 5,   /**< a peer sent what it may not send */
  RINGLET_CANCELLED = 6,        /**< the group was closed under the call */
  RINGLET_IO_ERROR = 7,         /**< a file cannot be read or written, or is damaged */
  RINGLET_OUT_OF_MEMORY = 256,
  RINGLET_INTERNAL_ERROR = 257, /**< what should not happen, or the system refused (a thread, a socket); the message says more */
  RINGLET_CALLBACK_FAILED = 258 /**< a function of the caller's returned something else than 0 */
};

/** A tensor whose elements are in the caller's memory. A call that would write one whose elements may share memory returns
 * RINGLET_INVALID_ARGUMENT. */
typedef struct ringlet_tensor {
  void* data;             /**< the first element (all indexes 0); of an `input`, or of `values` to be sent, it is only read */
  int32_t dtype;          /**< RINGLET_F32, ... */
  int32_t axes;           /**< 0 to 8; 0 is a scalar: one element */
  const int64_t* shape;   /**< `axes` extents, outermost first; may be NULL where axes is 0 */
  const int64_t* strides; /**< elements (not bytes) from one index to the next, one per axis; NULL: row-major without gaps */
} ringlet_tensor;

/** A tensor of a model, with its path: the names of the levels, outermost first, joined by dots ("layers.0.weight"). An array of these
 * is a tree: no name is empty or occurs twice, and number and order are the same on every rank. */
typedef struct ringlet_named_tensor {
  const char* name;      /**< its path */
  ringlet_tensor tensor; /**< its elements */
} ringlet_named_tensor;

/** Returns the library's version, such as "0.1.0". Never fails. */
RINGLET_API const char* ringlet_version(void);

/** Returns the message of the calling thread's last call if it failed: one sentence; "" after a success. It is valid until the thread's
 * next call of this library; this function, ringlet_error_rank and the functions that free handles do not count as calls. Never fails. */
RINGLET_API const char* ringlet_error_message(void);
/** Returns the rank that caused the calling thread's last failure, always counted in the world, whichever group failed; -1 if there was
 * no failure or no rank is known. Never fails. */
RINGLET_API int32_t ringlet_error_rank(void);
/** Returns the name of a code, such as "mismatch" or "out_of_memory"; "unknown" for other numbers. Never fails. */
RINGLET_API const char* ringlet_code_name(int32_t code);

#ifdef __cplusplus
}
#endif
