#pragma once

#include <atomic>

#include "core/base/refuse.hpp"

namespace ringlet::native {

/// Refuses a call of an object while another one of it runs: what the first one calls may be anything, and a call that was interrupted goes
/// on in a thread of its own.
class ExclusiveCall {
 public:
  /// `is_running` belongs to the object. Throws `InvalidArgument` with this text where it is set.
  ExclusiveCall(std::atomic<bool>& is_running, const char* refusal) : is_running_(is_running) {
    if (is_running_.exchange(true)) refuse(refusal);
  }
  ExclusiveCall(const ExclusiveCall&) = delete;
  ExclusiveCall& operator=(const ExclusiveCall&) = delete;
  ~ExclusiveCall() { is_running_ = false; }

 private:
  std::atomic<bool>& is_running_;
};

}  // namespace ringlet::native
