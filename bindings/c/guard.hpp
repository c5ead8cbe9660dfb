#pragma once

#include <ringlet/c/base.h>

#include <stdexcept>
#include <utility>

namespace ringlet::c {

/// A mistake in a C call's arguments; the function's name is put before it.
class BadArgument : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A function of the caller's failed.
class CallbackFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Forgets the thread's last error.
void clear_error() noexcept;
/// The thread's last error becomes the exception that is being handled; returns its code. `call` is the C function.
int32_t record_exception(const char* call) noexcept;

/// Runs the body of a C function: whatever it throws becomes a code.
template <class Body>
int32_t guarded(const char* call, Body&& body) noexcept {
  clear_error();
  try {
    std::forward<Body>(body)();
    return RINGLET_OK;
  } catch (...) {
    return record_exception(call);
  }
}

/// Throws `CallbackFailed` unless `code`, which the caller's function `name` returned, is 0. Says what that function's own last call said.
void require_callback_success(const char* name, int32_t code);

}  // namespace ringlet::c
