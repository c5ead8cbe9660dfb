#include "native/outer/pace.hpp"

#include <algorithm>
#include <cmath>

namespace ringlet::native {

int steps_for(int interval, double seconds_per_step, std::span<const InnerReport> all) {
  constexpr double kNoise = 1.1;
  double fastest = seconds_per_step;
  for (const InnerReport& report : all)
    if (report.seconds_per_step > 0) fastest = std::min(fastest, report.seconds_per_step);
  if (!(fastest > 0) || !(seconds_per_step > fastest * kNoise)) return interval;
  return std::clamp(static_cast<int>(std::lround(interval * fastest / seconds_per_step)), 1, interval);
}

int overlapped_steps(int steps, int overlap, int interval) {
  if (overlap == 0) return 0;
  return std::clamp((steps * overlap + interval / 2) / interval, 1, steps);
}

}  // namespace ringlet::native
