#pragma once

#include <compare>
#include <cstdint>

namespace ringlet {

/// A length of time in nanoseconds. core/ reads no clock; its callers pass the time in.
struct Duration {
  std::int64_t nanoseconds = 0;

  static constexpr Duration microseconds(std::int64_t count) { return {count * 1'000}; }
  static constexpr Duration milliseconds(std::int64_t count) { return {count * 1'000'000}; }
  static constexpr Duration seconds(std::int64_t count) { return {count * 1'000'000'000}; }
  constexpr std::int64_t whole_milliseconds() const { return nanoseconds / 1'000'000; }

  friend constexpr auto operator<=>(const Duration&, const Duration&) = default;
  friend constexpr Duration operator+(Duration one, Duration other) { return {one.nanoseconds + other.nanoseconds}; }
  friend constexpr Duration operator/(Duration value, std::int64_t divisor) { return {value.nanoseconds / divisor}; }
  friend constexpr Duration operator*(Duration value, std::int64_t factor) { return {value.nanoseconds * factor}; }
};

inline constexpr std::int64_t kPicosecondsPerNanosecond = 1000;

/// A moment on a monotonic clock; only differences between moments have a meaning.
struct Instant {
  std::int64_t nanoseconds = 0;

  friend constexpr auto operator<=>(const Instant&, const Instant&) = default;
  friend constexpr Instant operator+(Instant instant, Duration duration) { return {instant.nanoseconds + duration.nanoseconds}; }
  friend constexpr Duration operator-(Instant later, Instant earlier) { return {later.nanoseconds - earlier.nanoseconds}; }
};

}  // namespace ringlet
