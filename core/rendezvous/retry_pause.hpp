#pragma once

#include <algorithm>
#include <ringlet/status.hpp>
#include <utility>

#include "core/base/time.hpp"

namespace ringlet {

/// How often in a row a peer may refuse a dialler before it gives the peer up. A single refusal may come from a rank that was just ending.
inline constexpr int kMaxRefusals = 3;

/// Counts how often in a row a peer has refused a dialler.
class RefusalsInRow {
 public:
  /// Counts a dial that has failed. Returns whether the peer is to be given up: waiting changes neither a token nor a version.
  bool add(const Status& failure) {
    count_ = failure.code() == Errc::mismatch ? count_ + 1 : 0;
    return count_ >= kMaxRefusals || failure.code() == Errc::protocol_error;
  }
  void clear() { count_ = 0; }
  bool any() const { return count_ > 0; }

 private:
  int count_ = 0;
};

/// The pauses between dials of one address: each is twice as long as the one before, up to a second.
class RetryPause {
 public:
  explicit RetryPause(Duration first = Duration::milliseconds(20)) : pause_(first) {}

  Duration next() { return std::exchange(pause_, std::min(pause_ * 2, Duration::seconds(1))); }

 private:
  Duration pause_;
};

}  // namespace ringlet
