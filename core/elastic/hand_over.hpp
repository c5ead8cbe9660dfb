#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Who has the training's state when a world begins, and who gives it to whom.
namespace ringlet {

/// What a rank tells of its state.
struct StateStanding {
  bool is_settled = false;  // all ranks had the same state in a world of this rank's
  std::uint64_t step = 0;   // how many steps are committed in it
  std::uint64_t saved = 0;  // the step of the newest checkpoint that it knows of
};

/// What follows from what all ranks have told.
struct StateComparison {
  bool is_same = true;           // nothing has to be handed over
  bool one_is_settled = false;   // so the training has begun
  std::uint64_t saved_by_all{};  // where one is settled: the least of what those know of
};
StateComparison compare_standings(std::span<const StateStanding> all);

/// Who hands the state to whom. The same on all ranks.
struct HandOver {
  std::uint64_t step = 0;
  std::string checksum;     // of the state that all will have; empty: no rank has one
  std::vector<int> givers;  // ascending; the first is the lowest rank of those with the most steps
  std::vector<int> takers;
  bool takes(int rank) const;
  /// The giver of a block of the state.
  int giver_of(std::size_t block) const { return givers[block % givers.size()]; }
};
/// By rank: the checksum of its state, empty where that is not whole, and the number of its steps.
HandOver plan_hand_over(std::span<const std::string> checksums, std::span<const std::uint64_t> steps);

}  // namespace ringlet
