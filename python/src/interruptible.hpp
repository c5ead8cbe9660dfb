#pragma once

#include <nanobind/nanobind.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "lock.hpp"
#include "works.hpp"

namespace ringlet::python {

/// Calls a function that waits, and returns its result. The function runs on a thread of its own, while this one looks for signals. If one
/// of their handlers throws, this call throws that, and the function goes on by itself: so it must own all that it uses, and nothing of it
/// may be Python's. `arrays`, whose memory it uses, are then kept for ever.
template <class Function>
auto interruptible(Function function, std::vector<ArrayView> arrays = {}) {
  struct Call {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<decltype(function())> result;
    std::exception_ptr error;
  };
  const auto call = std::make_shared<Call>();
  std::thread([call, owned = std::optional(std::move(function))]() mutable {
    std::optional<decltype(function())> result;
    std::exception_ptr error;
    try {
      result.emplace((*owned)());
    } catch (...) {
      error = std::current_exception();
    }
    // Before the caller goes on: what it drops last may be Python's, and the program may end then.
    owned.reset();
    const std::lock_guard lock(call->mutex);
    call->result = std::move(result);
    call->error = std::move(error);
    call->changed.notify_all();
  }).detach();
  for (;;) {
    {
      const WithoutLock unlocked;
      std::unique_lock lock(call->mutex);
      if (call->changed.wait_for(lock, kSlice, [&] { return call->result || call->error; })) break;
    }
    if (PyErr_CheckSignals() != 0) {
      if (!arrays.empty()) new std::vector<ArrayView>(std::move(arrays));  // the function's end is not waited for any more
      throw nb::python_error();
    }
  }
  if (call->error) std::rethrow_exception(std::exchange(call->error, nullptr));
  return std::move(*call->result);
}

}  // namespace ringlet::python
