#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace ringlet::test {

/// The numbers 0 .. count-1. RINGLET_SEED=17 replays one of them; RINGLET_SEED_PERCENT=10 takes the first tenth, for slow builds.
inline std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* one = std::getenv("RINGLET_SEED")) return {std::strtoull(one, nullptr, 10)};
  if (const char* percent = std::getenv("RINGLET_SEED_PERCENT"))
    count = std::max<std::uint64_t>(1, count * std::strtoull(percent, nullptr, 10) / 100);
  std::vector<std::uint64_t> all(count);
  for (std::uint64_t seed = 0; seed < count; ++seed) all[seed] = seed;
  return all;
}

}  // namespace ringlet::test
