#pragma once

/**
 * @file
 * Ringlet for C (C99), and for what can call C: Swift, Rust, Python's ctypes. The library is libringlet; C++ programs use ringlet.hpp.
 *
 * - Every function returns RINGLET_OK or the code of what went wrong, and lets no C++ exception out; ringlet_error_message() then says it
 *   in words. Exceptions to the rule are the functions that free a handle, and the few that cannot fail and return what they were asked
 * for. What a function writes through its last parameters is written on success; handles are set to NULL on failure.
 * - Handles (ringlet_group, ringlet_work, ...) are opaque. Whoever gets one frees it, with the function named after its type, which takes
 *   NULL too. Unless said otherwise a handle is used by one thread at a time, and handles may be freed in any order: what a handle needs
 *   of others it keeps alive itself.
 * - Tensors are the caller's memory, described by ringlet_tensor. The descriptions themselves (shapes, strides, names, options, arrays of
 *   counts) are read during the call only; how long elements are borrowed is said at each function: without a word, during the call.
 * - Options are structs that begin with `struct_size`. Fill them with their ..._options_init function, then change what you want;
 *   NULL means the defaults. So a program keeps working with a later library, whose options have more members.
 * - Text is UTF-8 and ends with a zero.
 */

#include <ringlet/c/base.h>
#include <ringlet/c/checkpoint.h>
#include <ringlet/c/collectives.h>
#include <ringlet/c/fsdp.h>
#include <ringlet/c/gradients.h>
#include <ringlet/c/group.h>
#include <ringlet/c/messages.h>
#include <ringlet/c/optimizers.h>
