#include "core/elastic/hand_over.hpp"

#include <algorithm>

namespace ringlet {

StateComparison compare_standings(std::span<const StateStanding> all) {
  StateComparison found;
  for (const StateStanding& one : all) {
    found.is_same = found.is_same && one.is_settled && one.step == all.front().step;
    if (!one.is_settled) continue;
    found.saved_by_all = found.one_is_settled ? std::min(found.saved_by_all, one.saved) : one.saved;
    found.one_is_settled = true;
  }
  return found;
}

bool HandOver::takes(int rank) const { return std::find(takers.begin(), takers.end(), rank) != takers.end(); }

HandOver plan_hand_over(std::span<const std::string> checksums, std::span<const std::uint64_t> steps) {
  HandOver plan;
  for (std::size_t rank = 0; rank < steps.size(); ++rank)
    if (!checksums[rank].empty() && (plan.checksum.empty() || steps[rank] > plan.step)) {
      plan.step = steps[rank];
      plan.checksum = checksums[rank];
    }
  if (plan.checksum.empty()) return plan;
  for (std::size_t rank = 0; rank < steps.size(); ++rank) {
    const bool gives = checksums[rank] == plan.checksum && steps[rank] == plan.step;
    (gives ? plan.givers : plan.takers).push_back(static_cast<int>(rank));
  }
  return plan;
}

}  // namespace ringlet
