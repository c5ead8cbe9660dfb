#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/elastic/growth.hpp"

namespace ringlet {

/// What ranks that train tell each other with each vote.
struct Signals {
  /// Of each number the least of all ranks counts.
  using Numbers = std::array<std::int32_t, 2>;

  GrowthStanding growth = GrowthStanding::idle;
  bool has_waited = false;  // in vain for min_ranks

  Numbers numbers() const { return {static_cast<std::int32_t>(growth), has_waited ? 0 : 1}; }
  static Signals from(const Numbers& least) {
    return {static_cast<GrowthStanding>(std::clamp<std::int32_t>(least[0], 0, static_cast<std::int32_t>(GrowthStanding::idle))),
            least[1] == 0};
  }
};

}  // namespace ringlet
