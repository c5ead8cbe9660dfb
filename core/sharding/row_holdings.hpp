#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ringlet/tree.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/sharding/row_spread.hpp"
#include "core/sharding/row_standing.hpp"

// Who holds which rows of a sharded state, and what moves when. Nothing here has memory of rows, or moves any.
namespace ringlet {

/// What happens with the rows where a world begins. The same on all its ranks, but for the rank.
struct RowEntry {
  enum class Outcome : std::uint8_t {
    stay,   // all ranks have what they are to have
    moves,  // rows are spread anew
    lost,   // all holders of some rows have gone; the rows are where `next` has them, but have no values
  };
  Outcome outcome = Outcome::stay;
  bool has_rows = false;           // this rank, which count
  std::uint64_t step = 0;          // of the rows that count
  bool are_whole = false;          // all ranks have the full parameters
  bool is_fresh = false;           // before any step: all moves are made at once
  bool none_is_lost = false;       // of the ranks that held rows
  std::optional<RowHolding> next;  // unless they stay
  std::vector<RowMove> moves;      // to it
  std::string lost;                // which rows
};

/// `told` has what each rank of the world tells, by rank. `needs_whole` says that full parameters, where some rank lacks them, move, too.
/// Not all weights are 0.
RowEntry plan_row_entry(const Tree& outline, std::span<const RowStanding> told, int own_rank, int copies, bool needs_whole);

/// The rows that a rank holds and those that take their place with the next step, as a rank knows them of all. A world's ranks make the
/// same calls, so all know the same.
class RowHoldings {
 public:
  /// In the first world rows are where RowSpread has them with equal weights and each rank on a machine of its own. A rank that has no rows
  /// has joined later.
  RowHoldings(int ranks, int rank, int copies, bool has_rows);

  /// The rows in this rank's memory.
  const RowHolding& held() const { return held_; }
  /// Those that the next step updates.
  const RowHolding& current() const { return next_ ? next_->holding : held_; }
  /// Whether they are others than those held.
  bool are_coming() const { return next_.has_value(); }
  /// Whether the second holders have all their rows.
  bool are_twofold() const { return !next_ && held_.missing.empty(); }

  /// Rows that were to come do not any more.
  void drop_coming();
  void enter(RowEntry entry);
  /// The moves to first holders, which are made before the next step ends; before any step all moves.
  const std::vector<RowMove>& moves_to_first() const { return next_->to_first; }

  /// The moves to second holders that are made during the next step. If all ranks are there that held rows, these are all; else no rank
  /// sends or receives more than `bytes`, as in take_row_moves().
  std::vector<RowMove> take_moves_to_second(std::span<const std::size_t> row_bytes, std::size_t bytes);
  /// What is missing once they have been made.
  const std::vector<RowMove>& missing_afterwards() const { return missing_afterwards_; }
  /// All ranks take the rows that have come.
  void take();

  /// All first holders have loaded their rows.
  void loaded();
  /// What this rank holds counts no more.
  void forget() { held_.generation = -1; }

 private:
  /// Rows that take the place of the others.
  struct Coming {
    RowHolding holding;
    std::vector<RowMove> to_first, own;  // to first holders, and to second holders that have the rows themselves
    bool none_is_lost;                   // of the ranks that held rows
  };

  RowHolding held_;
  std::optional<Coming> next_;
  std::vector<RowMove> missing_afterwards_;
};

}  // namespace ringlet
