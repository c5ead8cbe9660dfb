#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace ringlet {

/// How the forming of a group's next world, with processes that join, stands on a rank. Where it stands differently on the ranks, the
/// first of these counts.
enum class GrowthState : std::uint8_t {
  failed,   // the ranks of the next world have not met, or have lost one of them since
  forming,  // they are meeting
  ready,    // they have met, as far as this rank knows
  none,     // nothing has begun
};

/// What ranks that train tell each other with each vote.
struct Signals {
  /// Of each number the least of all ranks counts.
  using Numbers = std::array<std::int32_t, 2>;

  GrowthState growth = GrowthState::none;
  bool knocks = false;  // somebody waits at a door

  Numbers numbers() const { return {static_cast<std::int32_t>(growth), knocks ? 0 : 1}; }
  static Signals from(const Numbers& least) {
    return {static_cast<GrowthState>(std::clamp<std::int32_t>(least[0], 0, static_cast<std::int32_t>(GrowthState::none))), least[1] == 0};
  }
};

}  // namespace ringlet
