#pragma once

#include <algorithm>
#include <utility>

#include "core/base/time.hpp"

namespace ringlet {

/// How often in a row a peer may refuse a dialler before it gives the peer up. A single refusal may come from a rank that was just ending.
inline constexpr int kMaxRefusals = 3;

/// The pauses between dials of one address: each is twice as long as the one before, up to a second.
class RetryPause {
 public:
  explicit RetryPause(Duration first = Duration::milliseconds(20)) : pause_(first) {}

  Duration next() { return std::exchange(pause_, std::min(pause_ * 2, Duration::seconds(1))); }

 private:
  Duration pause_;
};

}  // namespace ringlet
