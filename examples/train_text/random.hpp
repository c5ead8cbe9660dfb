#pragma once

#include <cmath>
#include <cstdint>

namespace train_text {

/// A bijection of 64 bits that leaves no visible relation between neighbouring inputs (the finaliser of SplitMix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// Returns the random number of the position (seed, a, b). It has no state, so any rank can compute any number.
constexpr std::uint64_t random_at(std::uint64_t seed, std::uint64_t a, std::uint64_t b) { return mix(mix(mix(seed) ^ a) ^ b); }

/// Returns a number in [0, 1).
constexpr double unit_interval(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/// Returns a normally distributed number with mean 0 and variance 1 for the position (seed, a, b).
inline double normal_at(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  constexpr double kTwoPi = 6.283185307179586;
  const std::uint64_t bits = random_at(seed, a, b);
  const double radius = std::sqrt(-2.0 * std::log(1.0 - unit_interval(bits)));
  return radius * std::cos(kTwoPi * unit_interval(mix(bits)));
}

}  // namespace train_text
