#pragma once

/** @file
 * Codes, errors and tensors. */

#include <ringlet/c/dtypes.h>
#include <ringlet/c/language.h>
#include <stddef.h>
#include <stdint.h>

/** What others may link to. */
#if defined(_WIN32)
#define RINGLET_API
#else
#define RINGLET_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What functions return, as int32_t. Later versions may add codes. */
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

/** Elements in the caller's memory. */
typedef struct ringlet_tensor {
  void* data;             /**< the element of all indexes 0; of a parameter named `input` or `values` to be sent it is only read */
  int32_t dtype;          /**< RINGLET_F32, ... */
  int32_t axes;           /**< 0 to 8; 0 is a scalar: one element */
  const int64_t* shape;   /**< `axes` extents, outermost first; may be NULL where axes is 0 */
  const int64_t* strides; /**< elements (not bytes) from one index to the next, one per axis; NULL: row-major without gaps */
} ringlet_tensor;

/** A tensor of a model, with its path: the names of the levels, outermost first, joined by dots ("layers.0.weight"). Arrays of these are
 * trees: names are not empty and each is there once; number and order are the same on every rank. */
typedef struct ringlet_named_tensor {
  const char* name;      /**< its path */
  ringlet_tensor tensor; /**< its elements */
} ringlet_named_tensor;

/** The library's version, "0.1.0". Never fails. */
RINGLET_API const char* ringlet_version(void);

/** What the calling thread's last call said on failure: one sentence; "" after a success. Valid until the thread's next call of this
 * library; this function, ringlet_error_rank and those that free handles do not count as calls. Never fails. */
RINGLET_API const char* ringlet_error_message(void);
/** The rank that caused the calling thread's last failure, always counted in the world, whichever group failed; -1 where none did or none
 * is known. Never fails. */
RINGLET_API int32_t ringlet_error_rank(void);
/** "mismatch", "out_of_memory", ...; "unknown" for other numbers. Never fails. */
RINGLET_API const char* ringlet_code_name(int32_t code);

#ifdef __cplusplus
}
#endif
