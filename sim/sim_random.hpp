#pragma once

#include <cstdint>

#include "sim/sim_options.hpp"

namespace ringlet {

/// A seeded generator (splitmix64) that gives the same numbers with every standard library.
class SimRandom {
 public:
  explicit SimRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
  }
  /// Returns a number in [0, bound), or 0 if the bound is 0.
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
  bool chance(std::uint32_t per_mille) { return per_mille != 0 && below(1000) < per_mille; }
  std::uint64_t in(Range<std::uint64_t> range) { return range.least + below(range.most - range.least + 1); }
  Duration in(Range<Duration> range) {
    const std::uint64_t width = static_cast<std::uint64_t>(range.most.nanoseconds - range.least.nanoseconds);
    return {range.least.nanoseconds + static_cast<std::int64_t>(below(width + 1))};
  }
  std::uint32_t in(Range<std::uint32_t> range) { return static_cast<std::uint32_t>(in(Range<std::uint64_t>{range.least, range.most})); }

 private:
  std::uint64_t state_;
};

}  // namespace ringlet
