#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace ringlet::test {

/// Returns `count`, or as much of it as RINGLET_SEED_PERCENT says, but at least 1, so that slow builds do less.
inline std::uint64_t share_of(std::uint64_t count) {
  const char* percent = std::getenv("RINGLET_SEED_PERCENT");
  return percent == nullptr ? count : std::max<std::uint64_t>(1, count * std::strtoull(percent, nullptr, 10) / 100);
}

/// Whether this is a build that takes a part of the seeds alone.
inline bool takes_part_of_seeds() { return share_of(100) < 100; }

/// Returns the numbers 0 .. count-1. RINGLET_SEED=17 replays one of them; RINGLET_SEED_PERCENT=10 takes the first tenth, for slow builds.
inline std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* one = std::getenv("RINGLET_SEED")) return {std::strtoull(one, nullptr, 10)};
  std::vector<std::uint64_t> all(share_of(count));
  for (std::uint64_t seed = 0; seed < all.size(); ++seed) all[seed] = seed;
  return all;
}

/// Chooses among the cases of a test without seeds, so that slow builds do less: `if (!cases.has_next()) continue;`.
/// RINGLET_SEED_PERCENT=10 takes every tenth on average, the first among them, at uneven distances, since nested loops would take the same
/// values again and again.
class Cases {
 public:
  bool has_next() { return count_++ * 61 % 100 < percent_; }

 private:
  const std::uint64_t percent_ = share_of(100);
  std::uint64_t count_ = 0;
};

}  // namespace ringlet::test
