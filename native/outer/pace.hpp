#pragma once

#include <span>

namespace ringlet::native {

/// What each rank tells the others before an average.
struct InnerReport {
  double samples = 0;           // since the last one
  double seconds_per_step = 0;  // of its own inner steps; 0: not known
};

/// How many of `interval` inner steps a rank takes next, at least one, if the others are not to wait for it. All are taken by a rank whose
/// steps take less than a tenth longer than the fastest rank's, so that noise changes nothing.
int steps_for(int interval, double seconds_per_step, std::span<const InnerReport> all);

/// Of so many steps, those during which an average goes on: `overlap` of `interval`, in proportion.
int overlapped_steps(int steps, int overlap, int interval);

}  // namespace ringlet::native
