#pragma once

#include <bit>

namespace ringlet {

// Who has whose contributions in a doubling. The ranks below the largest power of two, the core, exchange all that they have gathered with
// rank ^ 1, rank ^ 2, rank ^ 4, ... A rank behind the core brings its contribution to the rank of the core with the same low bits before,
// and gets all others from it at the end. So the core moves pairs of contributions, of which some have only one.
//
// Before the step with rank ^ `block` a rank of the core has `block` pairs. Pair number x is that of rank ^ gray(x), where gray is the
// reflected Gray code; pair 0 is its own. Each step sends the pair that came last first, and turns their contributions around, too.

inline int core_size(int size) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(size))); }

/// Calls `visit(rank)` for the one or two ranks of pair number `x` of `core_rank`, in the order of arrival, or backwards.
template <class Visit>
void for_pair(int core_rank, int x, int size, bool backwards, Visit visit) {
  const int gray = x ^ (x >> 1);
  const int low = core_rank ^ gray, high = low + core_size(size);
  const bool high_first = (std::popcount(static_cast<unsigned>(gray)) % 2 == 1) != backwards;
  if (high_first && high < size) visit(high);
  visit(low);
  if (!high_first && high < size) visit(high);
}

/// Calls `visit(rank)` for each rank whose contribution `core_rank` has before the step with core_rank ^ `block`, in the order of arrival.
template <class Visit>
void for_gathered(int core_rank, int block, int size, Visit visit) {
  for (int x = 0; x < block; ++x) for_pair(core_rank, x, size, false, visit);
}

/// The same, the one that came last first.
template <class Visit>
void for_gathered_backwards(int core_rank, int block, int size, Visit visit) {
  for (int x = block - 1; x >= 0; --x) for_pair(core_rank, x, size, true, visit);
}

/// The number of the ranks that for_gathered() visits.
inline int count_gathered(int core_rank, int block, int size) {
  int count = 0;
  for_gathered(core_rank, block, size, [&](int) { ++count; });
  return count;
}

}  // namespace ringlet
