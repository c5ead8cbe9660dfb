#include "tests/core/sim_rows.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <utility>

namespace ringlet::test {

namespace {

constexpr int kCopies = 2;
constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kRowBytes = 2 * sizeof(float);  // a parameter and its momentum
constexpr std::array<std::size_t, 2> kFirstRow{0, 4};
static_assert(kSimRows == 6);

const Tree& outline() {
  static const Tree kOutline{{"a", {nullptr, DType::f32, Shape{4}}}, {"b", {nullptr, DType::f32, Shape{2}}}};
  return kOutline;
}

SimState nothing() {
  SimState state;
  state.fill(kNothing);
  return state;
}

std::size_t position(std::size_t tensor, std::int64_t row) { return kFirstRow[tensor] + static_cast<std::size_t>(row); }

/// Calls `of_row` for each row of the shard, with whether the second holder has it.
template <class OfRow>
void for_rows(const RowSpread& spread, const std::vector<RowMove>& missing, int shard, OfRow&& of_row) {
  if (shard < 0) return;
  const ShardLayout layout = spread.layout(outline());
  for (std::size_t tensor = 0; tensor < outline().size(); ++tensor)
    for (const auto& [rows, at_second] : divide_rows(missing, tensor, spread.holder(shard, 1), layout.rows(outline()[tensor].name, shard)))
      for (std::int64_t row = rows.begin; row < rows.end; ++row) of_row(position(tensor, row), at_second);
}

}  // namespace

SimRows::SimRows(int ranks, int rank, bool has_rows, BrokenTrainer broken)
    : broken_(broken), holdings_(ranks, rank, kCopies, has_rows), rank_(rank) {
  held_.fill(nothing());
  next_.fill(nothing());
  if (!has_rows) return;
  const RowSpread& spread = holdings_.held().spread;
  for (int place = 0; place < spread.copies(); ++place)
    for_rows(spread, {}, spread.shard_at(rank, place), [&](std::size_t row, bool) {
      held_[static_cast<std::size_t>(place)][row] = held_[static_cast<std::size_t>(place)][kSimRows + row] = 0;
    });
}

std::string SimRows::standing(int machine, double weight) const {
  if (is(BrokenTrainer::holds_both_on_one_machine)) machine = rank_;
  return RowStanding{holdings_.held(), step_, false, weight, machine}.text();
}

std::string SimRows::enter(const std::vector<std::string>& told, int rank) {
  std::vector<RowStanding> all;
  for (const std::string& text : told) {
    auto one = RowStanding::parse(text, outline().size());
    REQUIRE(one.has_value());
    if (is(BrokenTrainer::counts_missing_rows)) one->holding.missing.clear();
    if (is(BrokenTrainer::asks_first_holders_alone)) one->holding.spread = one->holding.spread.first_holders();
    all.push_back(std::move(*one));
  }
  RowEntry entry = plan_row_entry(outline(), all, rank, is(BrokenTrainer::keeps_one_copy) ? 1 : kCopies, false);
  rank_ = rank;
  is_fresh_ = entry.is_fresh;
  step_ = entry.step;
  std::string lost = entry.lost;
  const bool keeps = entry.outcome != RowEntry::Outcome::lost;
  holdings_.enter(std::move(entry));
  if (!keeps) held_.fill(nothing());
  next_.fill(nothing());
  return keeps ? std::string() : lost;
}

std::vector<RowTransfer> SimRows::start(const std::vector<RowMove>& moves, Contents contents) {
  std::vector<RowTransfer> transfers;
  for (const RowMove& move : moves) {
    if (move.source != rank_ && move.target != rank_) continue;
    RowTransfer transfer{move,
                         move.source == rank_ ? move.target : move.source,
                         move.source == rank_,
                         contents != Contents::momenta,
                         contents != Contents::parameters,
                         {}};
    for (std::int64_t row = move.rows.begin; row < move.rows.end; ++row)
      for (const bool is_momentum : {false, true}) {
        if (!(is_momentum ? transfer.has_momenta : transfer.has_parameters)) continue;
        const std::size_t at = position(move.tensor, row) + (is_momentum ? kSimRows : 0);
        transfer.values.push_back(transfer.sends ? held_[static_cast<std::size_t>(move.source_place)][at] : kNothing);
      }
    if (move.source == move.target) {
      transfer.sends = false;
      finish({transfer});
    } else {
      transfers.push_back(std::move(transfer));
    }
  }
  return transfers;
}

void SimRows::finish(const std::vector<RowTransfer>& transfers) {
  for (const RowTransfer& transfer : transfers) {
    if (transfer.sends) continue;
    auto value = transfer.values.begin();
    SimState& to = current()[static_cast<std::size_t>(transfer.move.target_place)];
    for (std::int64_t row = transfer.move.rows.begin; row < transfer.move.rows.end; ++row) {
      const std::size_t at = position(transfer.move.tensor, row);
      if (transfer.has_parameters) to[at] = *value++;
      if (transfer.has_momenta) to[kSimRows + at] = *value++;
    }
  }
}

std::vector<RowTransfer> SimRows::moves_to_first(Contents contents) { return start(holdings_.moves_to_first(), contents); }

std::vector<RowTransfer> SimRows::moves_of_step() {
  const bool counts_all = is(BrokenTrainer::counts_slice_as_all);
  // Where there is no room for a row, one moves all the same, so that a rebuild takes some steps.
  std::vector<RowMove> to_second = holdings_.take_moves_to_second(std::array{kRowBytes, kRowBytes}, counts_all ? kSimRows * kRowBytes : 1);
  if (counts_all && !to_second.empty()) to_second.resize(1);
  std::vector<RowTransfer> transfers;
  if (holdings_.are_coming()) transfers = moves_to_first(Contents::momenta);
  for (RowTransfer& transfer : start(to_second, Contents::both)) transfers.push_back(std::move(transfer));
  return transfers;
}

std::vector<RowTransfer> SimRows::gradients_to_second(const std::vector<float>& sum) {
  const RowSpread& spread = holdings_.current().spread;
  for (auto& gradients : gradients_) gradients.fill(kNothing);
  RowTransfer mine{{}, spread.holder(rank_, 1), true, true, false, {}}, others{{}, spread.shard_at(rank_, 1), false, true, false, {}};
  for_rows(spread, holdings_.missing_afterwards(), rank_, [&](std::size_t row, bool at_second) {
    gradients_[0][row] = sim_sum_of(sum, row);
    if (at_second) mine.values.push_back(gradients_[0][row]);
  });
  if (spread.copies() > 1)
    for_rows(spread, holdings_.missing_afterwards(), others.peer, [&](std::size_t, bool at_second) {
      if (at_second) others.values.push_back(kNothing);
    });
  std::vector<RowTransfer> transfers;
  for (RowTransfer* transfer : {&mine, &others})
    if (transfer->peer >= 0 && !transfer->values.empty()) transfers.push_back(std::move(*transfer));
  return transfers;
}

void SimRows::finish_gradients(const std::vector<RowTransfer>& transfers) {
  for (const RowTransfer& transfer : transfers) {
    if (transfer.sends) continue;
    auto value = transfer.values.begin();
    for_rows(holdings_.current().spread, holdings_.missing_afterwards(), transfer.peer, [&](std::size_t row, bool at_second) {
      if (at_second) gradients_[1][row] = *value++;
    });
  }
}

const SimState& SimRows::own() const { return current()[0]; }

SimState SimRows::join(const std::vector<SimState>& all) const {
  SimState whole = nothing();
  const RowSpread& spread = holdings_.current().spread;
  for (int rank = 0; rank < spread.ranks(); ++rank)
    for_rows(spread, {}, rank, [&](std::size_t row, bool) {
      for (const std::size_t at : {row, kSimRows + row}) whole[at] = all[static_cast<std::size_t>(rank)][at];
    });
  return whole;
}

void SimRows::take() {
  if (holdings_.are_coming()) held_ = next_;
  next_.fill(nothing());
  holdings_.take();
}

void SimRows::update() {
  for (std::size_t place = 0; place < held_.size(); ++place)
    for (std::size_t row = 0; row < kSimRows && !(place == 1 && is(BrokenTrainer::forgets_second_holders)); ++row)
      take_sim_step(held_[place], row, gradients_[place][row]);
  ++step_;
}

void SimRows::load(std::uint64_t step, const SimState& state) {
  if (holdings_.are_coming()) held_ = next_;
  holdings_.loaded();
  held_.fill(nothing());
  for_rows(holdings_.held().spread, {}, holdings_.held().rank, [&](std::size_t row, bool) {
    for (const std::size_t at : {row, kSimRows + row}) held_[0][at] = state[at];
  });
  step_ = step;
}

SimRows::Copies SimRows::copies() const {
  Copies copies;
  const RowHolding& holding = holdings_.held();
  if (holding.generation < 0) return copies;
  for (std::size_t place = 0; place < copies.size(); ++place) {
    copies[place].values = held_[place];
    if (static_cast<int>(place) < holding.spread.copies())
      for_rows(holding.spread, holding.missing, holding.spread.shard_at(holding.rank, static_cast<int>(place)),
               [&](std::size_t row, bool at_second) { copies[place].has[row] = place == 0 || at_second; });
  }
  return copies;
}

bool SimRows::holds(std::size_t row, std::uint64_t step) const {
  const Copies all = copies();
  return step_ == step && std::any_of(all.begin(), all.end(), [row](const Copy& copy) { return copy.has[row]; });
}

}  // namespace ringlet::test
