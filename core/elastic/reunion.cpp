#include "core/elastic/reunion.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace ringlet {

bool makes_way(int own_rank, std::span<const OtherRank> others) {
  std::size_t together = 1, living = 1;
  int first_together = own_rank, first_of_losers = std::numeric_limits<int>::max();
  bool was_lost = false, has_lost = false;
  for (const OtherRank& other : others) {
    has_lost = has_lost || !other.is_heard;
    if (other.has_left) continue;
    ++living;
    if (other.is_heard && other.has_lost_own) was_lost = true;
    if (other.is_heard && !other.has_lost_own) {
      ++together;
      first_together = std::min(first_together, other.rank);
    }
    if (other.has_lost_own) first_of_losers = std::min(first_of_losers, other.rank);
  }
  if (2 * together > living) return false;
  return (was_lost && !has_lost) || first_of_losers < first_together;
}

bool has_better_claim(const Agreement::Outcome& one, const Agreement::Outcome& other, std::uint64_t lineage) {
  const auto order = [&](const Agreement::Outcome& part) {
    return std::tuple(part.lineage != lineage, std::numeric_limits<std::size_t>::max() - part.members.size(), part.members);
  };
  return order(one) < order(other);
}

}  // namespace ringlet
