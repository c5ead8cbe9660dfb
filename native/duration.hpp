#pragma once

#include <algorithm>
#include <chrono>

#include "core/base/time.hpp"

namespace ringlet::native {

/// A duration of a caller, at most a century: milliseconds::max(), meant as "for ever", is more than a sum of nanoseconds can hold.
inline Duration duration_of(std::chrono::milliseconds count) {
  constexpr std::chrono::milliseconds kCentury = std::chrono::hours(24 * 36'525);
  return Duration::milliseconds(std::clamp(count, -kCentury, kCentury).count());
}

}  // namespace ringlet::native
