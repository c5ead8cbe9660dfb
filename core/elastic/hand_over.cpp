#include "core/elastic/hand_over.hpp"

#include <algorithm>

namespace ringlet {

StateComparison compare_standings(std::span<const EntryStanding> all) {
  StateComparison found;
  for (const EntryStanding& one : all) {
    found.is_same = found.is_same && one.is_settled && one.step == all.front().step;
    if (!one.is_settled) continue;
    found.saved_by_all = found.one_is_settled ? std::min(found.saved_by_all, one.saved) : one.saved;
    found.one_is_settled = true;
  }
  return found;
}

std::optional<SettingsDifference> compare_settings(std::span<const EntryStanding> all) {
  const auto begun = std::find_if(all.begin(), all.end(), [](const EntryStanding& one) { return one.is_settled; });
  const auto right = begun == all.end() ? all.begin() : begun;
  // A rank that has joined leaves when it is named, so those that train together are compared first.
  for (const bool of_begun : {true, false})
    for (auto one = all.begin(); one != all.end(); ++one)
      if (one->is_settled == of_begun && one->settings != right->settings)
        return SettingsDifference{static_cast<int>(one - all.begin()), static_cast<int>(right - all.begin())};
  return std::nullopt;
}

bool HandOver::takes(int rank) const { return std::find(takers.begin(), takers.end(), rank) != takers.end(); }

HandOver plan_hand_over(std::span<const Standing> standings, std::size_t natives) {
  HandOver plan;
  bool one_has_it = false;
  for (const Standing& one : standings.first(natives)) {
    if (one.lacks || (one_has_it && one.step <= plan.step)) continue;
    one_has_it = true;
    plan.step = one.step;
    plan.checksum = one.checksum;
  }
  if (!one_has_it) return plan;
  for (std::size_t rank = 0; rank < standings.size(); ++rank) {
    const Standing& one = standings[rank];
    const bool has_it = !one.lacks && one.step == plan.step && one.checksum == plan.checksum;
    if (!has_it)
      plan.takers.push_back(static_cast<int>(rank));
    else if (rank < natives)
      plan.givers.push_back(static_cast<int>(rank));
  }
  return plan;
}

}  // namespace ringlet
