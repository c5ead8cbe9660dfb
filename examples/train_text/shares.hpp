#pragma once

#include <span>
#include <vector>

#include "batches.hpp"

// Who takes how much of what all have to do. Every rank computes this for all ranks, from the same numbers, and so they agree.
namespace train_text {

/// How many of `total` samples each rank takes so that the slowest is done as early as can be: one after the other goes to the rank that
/// would be done with it first, the lower of equals. `seconds_per_sample` by rank; all equal: the same counts as slice_of. Each rank takes
/// at least one where there are enough, so that its speed stays known.
std::vector<int> counts_by_speed(int total, std::span<const double> seconds_per_sample);

/// The contiguous part of a rank, where rank r takes counts[r].
Slice slice_of(std::span<const int> counts, int rank);

/// What is known about the ranks' speeds. Until a rank's is known it counts as the mean of those that are.
class Speeds {
 public:
  explicit Speeds(int ranks) : seconds_per_sample_(static_cast<std::size_t>(ranks), 0.0) {}
  /// By rank what was measured since the last time; what is not above 0 and finite says nothing new. It is mixed half and half with what
  /// was known before, so that one disturbance does not move the shares far.
  void observe(std::span<const double> seconds_per_sample);
  std::vector<int> counts(int total) const;

 private:
  std::vector<double> seconds_per_sample_;  // 0: not known
};

}  // namespace train_text
