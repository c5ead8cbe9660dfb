#include "shares.hpp"

#include <algorithm>
#include <numeric>

namespace train_text {
namespace {

// Any machine that can train is faster than this, and no computation overflows below it.
constexpr double kSlowest = 1e6;

bool is_known(double seconds) { return seconds > 0 && seconds <= kSlowest; }

}  // namespace

std::vector<int> counts_by_speed(int total, std::span<const double> seconds_per_sample) {
  const std::size_t ranks = seconds_per_sample.size();
  std::vector<int> counts(ranks, total >= static_cast<int>(ranks) ? 1 : 0);
  for (int left = total - std::accumulate(counts.begin(), counts.end(), 0); left > 0; --left) {
    std::size_t first_done = 0;
    const auto done_at = [&](std::size_t rank) { return (counts[rank] + 1) * seconds_per_sample[rank]; };
    for (std::size_t rank = 1; rank < ranks; ++rank) {
      if (done_at(rank) < done_at(first_done)) first_done = rank;
    }
    ++counts[first_done];
  }
  return counts;
}

Slice slice_of(std::span<const int> counts, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  return {std::accumulate(counts.begin(), counts.begin() + rank, 0), counts[index]};
}

void Speeds::observe(std::span<const double> seconds_per_sample) {
  for (std::size_t rank = 0; rank < seconds_per_sample_.size(); ++rank) {
    double& known = seconds_per_sample_[rank];
    const double measured = seconds_per_sample[rank];
    if (is_known(measured)) known = is_known(known) ? 0.5 * known + 0.5 * measured : measured;
  }
}

std::vector<int> Speeds::counts(int total) const {
  double sum = 0;
  int known = 0;
  for (const double seconds : seconds_per_sample_) {
    if (!is_known(seconds)) continue;
    sum += seconds;
    ++known;
  }
  const double mean = known > 0 ? sum / known : 1.0;
  std::vector<double> guessed = seconds_per_sample_;
  std::replace_if(guessed.begin(), guessed.end(), [](double seconds) { return !is_known(seconds); }, mean);
  return counts_by_speed(total, guessed);
}

}  // namespace train_text
