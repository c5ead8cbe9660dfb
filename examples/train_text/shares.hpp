#pragma once

#include <span>
#include <vector>

#include "batches.hpp"

// Distributes a step's samples over the ranks. Every rank computes the whole distribution from the same numbers, so all ranks agree.
namespace train_text {

/// Returns how many of `total` samples each rank takes so that the slowest rank finishes as early as possible. Each sample goes to the rank
/// that would finish it first, or to the lowest of equal ranks. `seconds_per_sample` is by rank; if all are equal, the counts are those of
/// slice_of. Each rank takes at least one sample if there are enough, so that its speed stays known.
std::vector<int> counts_by_speed(int total, std::span<const double> seconds_per_sample);

/// Returns the contiguous part of a rank, if rank r takes counts[r] samples.
Slice slice_of(std::span<const int> counts, int rank);

/// Records the ranks' speeds. A rank whose speed is unknown counts as the mean of the known ones.
class Speeds {
 public:
  explicit Speeds(int ranks) : seconds_per_sample_(static_cast<std::size_t>(ranks), 0.0) {}
  /// Takes each rank's latest measurement. Values that are not positive and finite are ignored. A measurement counts half, and the previous
  /// value half, so that one disturbance does not move the shares far.
  void observe(std::span<const double> seconds_per_sample);
  std::vector<int> counts(int total) const;

 private:
  std::vector<double> seconds_per_sample_;  // 0 if not known
};

}  // namespace train_text
