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

HandOver plan_hand_over(std::span<const StateOffer> offers, std::size_t natives) {
  HandOver plan;
  bool one_has_it = false;
  for (const StateOffer& offer : offers.first(natives)) {
    if (offer.lacks || (one_has_it && offer.step <= plan.step)) continue;
    one_has_it = true;
    plan.step = offer.step;
    plan.checksum = offer.checksum;
  }
  if (!one_has_it) return plan;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const StateOffer& offer = offers[rank];
    const bool has_it = !offer.lacks && offer.step == plan.step && offer.checksum == plan.checksum;
    if (!has_it)
      plan.takers.push_back(static_cast<int>(rank));
    else if (rank < natives)
      plan.givers.push_back(static_cast<int>(rank));
  }
  return plan;
}

}  // namespace ringlet
