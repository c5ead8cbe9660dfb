#pragma once

/**
 * @file
 * Ringlet for C (C99) and for languages that can call C: Swift, Rust, Python's ctypes. The library is libringlet; C++ programs use
 * ringlet.hpp.
 *
 * - Every function returns RINGLET_OK or an error code, and lets no C++ exception out; ringlet_error_message() then gives the error in
 *   words. The exceptions are the functions that free a handle, and the few that cannot fail and return their result. A function writes
 *   through its last parameters only on success; on failure it sets handles to NULL.
 * - Handles (ringlet_group, ringlet_work, ...) are opaque. The program frees each handle that it gets with the function named after its
 *   type, which accepts NULL. Unless said otherwise, only one thread at a time may use a handle. Handles may be freed in any order: a
 *   handle keeps alive what it needs of others.
 * - Tensors are the caller's memory, described by ringlet_tensor. The descriptions themselves (shapes, strides, names, options, arrays of
 *   counts) are read during the call only. Elements, too, are borrowed during the call only, unless a function says otherwise.
 * - Options are structs that begin with `struct_size`. Fill them with their ..._options_init function, then change single members;
 *   NULL means the defaults. So a program keeps working with a later library, whose options have more members.
 * - Text is UTF-8 and ends with a zero.
 */

#include <ringlet/c/base.h>
#include <ringlet/c/checkpoint.h>
#include <ringlet/c/collectives.h>
#include <ringlet/c/elastic.h>
#include <ringlet/c/fsdp.h>
#include <ringlet/c/gradients.h>
#include <ringlet/c/group.h>
#include <ringlet/c/messages.h>
#include <ringlet/c/optimizers.h>
#include <ringlet/c/outer.h>
#include <ringlet/c/trace.h>
