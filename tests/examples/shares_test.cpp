#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random.hpp>
#include <shares.hpp>
#include <string>

using namespace train_text;

namespace {

double end_of(const std::vector<int>& counts, const std::vector<double>& seconds) {
  double end = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) end = std::max(end, counts[rank] * seconds[rank]);
  return end;
}

// Returns the earliest end of all divisions in which every rank takes at least `least`.
double best_end(int total, const std::vector<double>& seconds, std::size_t rank, int least, double so_far) {
  if (rank + 1 == seconds.size()) return total < least ? std::numeric_limits<double>::infinity() : std::max(so_far, total * seconds[rank]);
  double best = std::numeric_limits<double>::infinity();
  for (int count = least; count <= total; ++count)
    best = std::min(best, best_end(total - count, seconds, rank + 1, least, std::max(so_far, count * seconds[rank])));
  return best;
}

}  // namespace

TEST_CASE("ranks of equal speed share as slices do") {
  const int total = GENERATE(1, 2, 7, 16, 30);
  const int ranks = GENERATE(1, 2, 3, 4, 7);
  CAPTURE(total, ranks);
  const std::vector<int> counts = counts_by_speed(total, std::vector<double>(static_cast<std::size_t>(ranks), 0.25));
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK(slice_of(counts, rank).first == slice_of(total, rank, ranks).first);
    CHECK(slice_of(counts, rank).count == slice_of(total, rank, ranks).count);
  }
}

TEST_CASE("no division lets the slowest be done earlier") {
  const std::uint64_t seed = GENERATE(range(0, 40));
  CAPTURE(seed);
  const std::size_t ranks = 1 + random_at(seed, 0, 0) % 4;
  const int total = static_cast<int>(random_at(seed, 0, 1) % 15);
  std::vector<double> seconds;
  for (std::size_t rank = 0; rank < ranks; ++rank) seconds.push_back(0.001 + 10 * unit_interval(random_at(seed, 1, rank)));
  const std::vector<int> counts = counts_by_speed(total, seconds);
  CHECK(std::accumulate(counts.begin(), counts.end(), 0) == total);
  const int least = total >= static_cast<int>(ranks) ? 1 : 0;
  CHECK(*std::min_element(counts.begin(), counts.end()) >= least);
  CHECK(end_of(counts, seconds) == Approx(best_end(total, seconds, 0, least, 0)));
}

TEST_CASE("a slow rank takes few, and keeps one while there are enough") {
  CHECK(counts_by_speed(16, std::vector<double>{0.01, 0.01, 1.0}) == std::vector<int>{8, 7, 1});
  CHECK(counts_by_speed(16, std::vector<double>{0.01, 0.03}) == std::vector<int>{12, 4});
  CHECK(counts_by_speed(2, std::vector<double>{1.0, 0.01, 0.01, 0.01}) == std::vector<int>{0, 1, 1, 0});
}

TEST_CASE("speeds are mixed with what was known, and nonsense says nothing") {
  Speeds speeds(2);
  CHECK(speeds.counts(10) == std::vector<int>{5, 5});
  speeds.observe(std::vector<double>{0.5, 0});
  CHECK(speeds.counts(10) == std::vector<int>{5, 5});
  speeds.observe(std::vector<double>{0.5, 0.5});
  speeds.observe(std::vector<double>{0.5, 1.5});
  CHECK(speeds.counts(12) == std::vector<int>{8, 4});
  const double nonsense =
      GENERATE(0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e300, -1e300);
  speeds.observe(std::vector<double>{nonsense, nonsense});
  CHECK(speeds.counts(12) == std::vector<int>{8, 4});
}
