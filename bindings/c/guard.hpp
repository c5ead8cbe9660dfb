#pragma once

#include <ringlet/c/base.h>

#include <stdexcept>
#include <utility>

namespace ringlet::c {

/// A mistake in the arguments of a C call. The message gets the function's name in front.
class BadArgument : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A function of the caller has failed.
class CallbackFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Clears the thread's last error.
void clear_error() noexcept;
/// Stores the exception that is being handled as the thread's last error, and returns its code. `call` is the name of the C function.
int32_t record_exception(const char* call) noexcept;

/// Runs the body of a C function and turns any exception into a code.
template <class Body>
int32_t guarded(const char* call, Body&& body) noexcept {
  clear_error();
  try {
    std::forward<Body>(body)();
    // A function of the caller may have made calls that failed.
    clear_error();
    return RINGLET_OK;
  } catch (...) {
    return record_exception(call);
  }
}

/// Throws `CallbackFailed` if `code`, which the caller's function `name` returned, is not 0. The message includes the error of the last
/// Ringlet call that this function made.
void require_callback_success(const char* name, int32_t code);
/// The same for a function that returns the code of the call that failed in it: throws that call's error, whose message is still known if
/// it was the last one.
void rethrow_failure_of_callback(const char* name, int32_t code);

}  // namespace ringlet::c
