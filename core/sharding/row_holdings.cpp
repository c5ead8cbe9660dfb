#include "core/sharding/row_holdings.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace ringlet {

namespace {

/// The same moves from those who are the first holders of the rows in the spread that the moves are for.
std::vector<RowMove> from_first_holders(std::vector<RowMove> moves, const RowSpread& spread) {
  for (RowMove& move : moves) {
    move.source = spread.shard_at(move.target, move.target_place);
    move.source_place = 0;
  }
  return moves;
}

RowSpread first_spread(int ranks, int copies) {
  std::vector<int> machines(static_cast<std::size_t>(ranks));
  std::iota(machines.begin(), machines.end(), 0);
  return {std::vector<double>(machines.size(), 1.0), machines, copies};
}

}  // namespace

RowEntry plan_row_entry(const Tree& outline, std::span<const RowStanding> told, int own_rank, int copies, bool needs_whole) {
  const RowStanding& newest =
      *std::max_element(told.begin(), told.end(), [](const RowStanding& a, const RowStanding& b) { return a.is_older_than(b); });
  const RowHolding& before = newest.holding;
  const bool some_have_rows = before.generation >= 0;
  const auto ranks = static_cast<int>(told.size());
  std::vector<double> weights;
  std::vector<int> machines, now(static_cast<std::size_t>(before.spread.ranks()), -1);
  bool none_moves = before.spread.ranks() == ranks, all_are_whole = true;
  RowEntry entry;
  for (int number = 0; number < ranks; ++number) {
    const RowStanding& rank = told[static_cast<std::size_t>(number)];
    weights.push_back(rank.weight);
    machines.push_back(rank.machine);
    // A rank that names a place which the newest spread has not cannot have its rows.
    const bool has_rows = some_have_rows && !rank.is_older_than(newest) && rank.holding.rank < before.spread.ranks();
    if (has_rows) now[static_cast<std::size_t>(rank.holding.rank)] = number;
    if (number == own_rank) entry.has_rows = has_rows;
    none_moves = none_moves && has_rows && rank.holding.rank == number;
    all_are_whole = all_are_whole && has_rows && rank.is_whole;
  }
  entry.step = newest.step;
  entry.are_whole = all_are_whole;
  entry.is_fresh = before.is_fresh;
  entry.none_is_lost = std::find(now.begin(), now.end(), -1) == now.end();
  const RowSpread after(std::move(weights), std::move(machines), copies);
  if (none_moves && !before.is_fresh && after == before.spread && (all_are_whole || !needs_whole)) return entry;

  std::optional<std::vector<RowMove>> moves;
  entry.lost = "all rows";
  // Fresh rows may differ between machines, as random numbers do.
  const RowSource preferred = before.is_fresh ? RowSource::first : RowSource::own;
  if (some_have_rows) moves = plan_row_moves(outline, before.spread, before.missing, now, after, preferred, entry.lost);
  if (!moves) {
    entry.outcome = RowEntry::Outcome::lost;
    entry.next = RowHolding{after.first_holders(), own_rank, {}, -1, false};
    return entry;
  }
  entry.outcome = RowEntry::Outcome::moves;
  entry.next = RowHolding{after, own_rank, {}, before.generation + 1, false};
  entry.moves = std::move(*moves);
  entry.lost.clear();
  return entry;
}

RowHoldings::RowHoldings(int ranks, int rank, int copies, bool has_rows)
    : held_{first_spread(ranks, copies), rank, {}, has_rows ? 0 : -1, true} {}

void RowHoldings::drop_coming() {
  next_.reset();
  missing_afterwards_.clear();
}

void RowHoldings::enter(RowEntry entry) {
  drop_coming();
  if (!entry.has_rows) held_.generation = -1;
  if (entry.outcome == RowEntry::Outcome::lost) held_ = std::move(*entry.next);
  if (entry.outcome != RowEntry::Outcome::moves) return;
  next_ = Coming{std::move(*entry.next), {}, {}, entry.none_is_lost};
  if (entry.is_fresh) {
    next_->to_first = std::move(entry.moves);
    return;
  }
  for (const RowMove& move : entry.moves)
    (move.target_place == 0 ? next_->to_first : move.source == move.target ? next_->own : next_->holding.missing).push_back(move);
}

std::vector<RowMove> RowHoldings::take_moves_to_second(std::span<const std::size_t> row_bytes, std::size_t bytes) {
  missing_afterwards_ = current().missing;
  const bool at_once = next_ && next_->none_is_lost;
  std::vector<RowMove> moves =
      take_row_moves(missing_afterwards_, row_bytes, current().spread.ranks(), at_once ? std::numeric_limits<std::size_t>::max() : bytes);
  if (next_) moves.insert(moves.begin(), next_->own.begin(), next_->own.end());
  return moves;
}

void RowHoldings::take() {
  if (next_) {
    held_ = std::move(next_->holding);
    next_.reset();
    missing_afterwards_ = from_first_holders(std::move(missing_afterwards_), held_.spread);
  }
  held_.missing = std::move(missing_afterwards_);
  missing_afterwards_.clear();
}

void RowHoldings::loaded() {
  if (next_) held_ = std::move(next_->holding);
  next_.reset();
  // What the second holders have is older.
  held_.spread = held_.spread.first_holders();
  held_.missing.clear();
  held_.generation = std::max<std::int64_t>(held_.generation, 0);
  held_.is_fresh = true;
}

}  // namespace ringlet
