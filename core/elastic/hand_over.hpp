#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/checksum.hpp"

// Who has the training's state when a world begins, and who gives it to whom.
namespace ringlet {

/// How a rank is to train. The same on all native ranks; here it is only compared.
struct TrainingSettings {
  std::uint64_t steps = 0;        // the last step
  std::uint64_t batch = 0;        // samples of each
  std::uint64_t saves_every = 0;  // steps
  std::uint64_t keeps = 0;        // checkpoints
  bool is_sharded = false;        // it has sharded state
  friend bool operator==(const TrainingSettings&, const TrainingSettings&) = default;
};

/// What a rank tells of its state when it enters a world.
struct EntryStanding {
  bool is_settled = false;  // all ranks had the same state in a world of this rank's
  std::uint64_t step = 0;   // how many steps are committed in it
  std::uint64_t saved = 0;  // the step of the newest checkpoint that it knows of
  TrainingSettings settings{};
};

/// What follows from what all ranks have told.
struct StateComparison {
  bool is_same = true;           // nothing has to be handed over
  bool one_is_settled = false;   // so the training has begun
  std::uint64_t saved_by_all{};  // where one is settled: the least of what those know of
};
StateComparison compare_standings(std::span<const EntryStanding> all);

/// Ranks that are not to train alike.
struct SettingsDifference {
  int rank = -1;  // the lowest that differs of those whose training has begun, else of those who have joined
  int other = 0;  // from this one: the lowest of those whose training has begun, or of all
};
/// Returns nothing where all are to train alike.
std::optional<SettingsDifference> compare_settings(std::span<const EntryStanding> all);

/// What a rank has of a training's state, where that may have to be handed over.
struct Standing {
  bool lacks = false;      // it has none: it came later, or its own was being overwritten
  std::uint64_t step = 0;  // how many steps are committed in it
  Checksum::Value checksum{};
};

/// Who hands the state to whom. The same on all ranks.
struct HandOver {
  std::uint64_t step = 0;
  Checksum::Value checksum{};  // of the state that all will have
  std::vector<int> givers;     // ascending; the first is the lowest rank of those with the most steps; empty: no rank has a state
  std::vector<int> takers;
  bool takes(int rank) const;
  /// The giver of a block of the state.
  int giver_of(std::size_t block) const { return givers[block % givers.size()]; }
};
/// Guests, which are behind the first `natives` ranks, never give, so no native rank has to believe one.
HandOver plan_hand_over(std::span<const Standing> standings, std::size_t natives);

}  // namespace ringlet
