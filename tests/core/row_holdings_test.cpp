#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/sharding/row_holdings.hpp"
#include "sim/sim_random.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

const Tree& outline() {
  static const Tree kOutline{
      {"w", {nullptr, DType::f32, Shape{7, 3}}}, {"few", {nullptr, DType::f32, Shape{2}}}, {"scalar", {nullptr, DType::f32, Shape{}}}};
  return kOutline;
}

constexpr std::size_t kRowBytes = 100;

using Row = std::pair<std::size_t, std::int64_t>;  // tensor, row
/// The steps of the rows that are in a place of a rank; a row that is not there has none.
using Place = std::map<Row, std::uint64_t>;

std::vector<Row> rows_of_shard(const RowSpread& spread, int shard) {
  std::vector<Row> rows;
  const ShardLayout layout = spread.layout(outline());
  for (std::size_t tensor = 0; shard >= 0 && tensor < outline().size(); ++tensor) {
    const RowRange range = layout.rows(outline()[tensor].name, shard);
    for (std::int64_t row = range.begin; row < range.end; ++row) rows.emplace_back(tensor, row);
  }
  return rows;
}

/// A rank that holds rows, of which only their steps are kept.
struct Rank {
  RowHoldings holdings;
  std::array<Place, 2> held{}, next{};
  std::uint64_t step = 0;
  double weight = 1;
  int machine = 0;

  Place& place(bool of_next, int at) { return (of_next ? next : held)[static_cast<std::size_t>(at)]; }
};

/// All ranks of a world. They hold a sharded state through losses and joins, as the native ranks do, but whatever is to be in a rank's
/// memory is looked up there.
class Ranks {
 public:
  Ranks(int size, SimRandom& random) : random_(random) {
    for (int rank = 0; rank < size; ++rank) {
      add({size, rank, 2, true});
      Rank& one = ranks_.back();
      const RowSpread& spread = one.holdings.held().spread;
      for (int at = 0; at < spread.copies(); ++at)
        for (const Row& row : rows_of_shard(spread, spread.shard_at(rank, at))) one.place(false, at)[row] = 0;
    }
  }

  std::size_t size() const { return ranks_.size(); }
  void join() { add({1, 0, 2, false}); }
  void lose(std::size_t rank) { ranks_.erase(ranks_.begin() + static_cast<std::ptrdiff_t>(rank)); }

  /// Returns whether rows were lost.
  bool enter() {
    if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& one) { return one.weight == 0; })) ranks_.back().weight = 1;
    std::vector<RowStanding> told;
    for (std::size_t rank = 0; rank < size(); ++rank) {
      Rank& one = ranks_[rank];
      const RowStanding mine{one.holdings.held(), one.step, false, one.weight, first_of_machine(rank)};
      const auto parsed = RowStanding::parse(mine.text(), outline().size());
      REQUIRE(parsed);
      REQUIRE(parsed->text() == mine.text());
      told.push_back(*parsed);
    }
    const bool is_lost = !all_rows_are_held();
    for (std::size_t rank = 0; rank < size(); ++rank) {
      RowEntry entry = plan_row_entry(outline(), told, static_cast<int>(rank), 2, false);
      REQUIRE((entry.outcome == RowEntry::Outcome::lost) == is_lost);
      REQUIRE(entry.lost.empty() == !is_lost);
      if (is_lost) continue;
      REQUIRE(entry.step == step_);
      ranks_[rank].step = step_;
      ranks_[rank].holdings.enter(entry);
      ranks_[rank].next = {};
      is_fresh_ = entry.is_fresh;
    }
    if (is_lost) return true;
    if (ranks_.front().holdings.are_coming() && is_fresh_) {
      move(ranks_.front().holdings.moves_to_first());
      take();
      check();
    }
    return false;
  }

  void take_step(std::size_t bytes) {
    std::vector<RowMove> moves;
    for (std::size_t rank = 0; rank < size(); ++rank) {
      const auto own = ranks_[rank].holdings.take_moves_to_second(std::vector<std::size_t>(outline().size(), kRowBytes), bytes);
      if (rank == 0) moves = own;
      REQUIRE(own == moves);
    }
    if (ranks_.front().holdings.are_coming()) move(ranks_.front().holdings.moves_to_first());
    move(moves);
    take();
    // Each row is updated that is there.
    for (Rank& one : ranks_) {
      for (Place& place : one.held)
        for (auto& [row, step] : place) ++step;
      ++one.step;
    }
    ++step_;
    check();
  }
  bool are_twofold() const { return ranks_.front().holdings.are_twofold(); }

 private:
  void add(const RowHoldings& holdings) {
    // A fifth is to hold no rows.
    ranks_.push_back({holdings});
    ranks_.back().weight = random_.below(5) != 0 ? 1.0 + static_cast<double>(random_.below(2)) : 0;
    ranks_.back().machine = static_cast<int>(random_.below(4));
  }

  int first_of_machine(std::size_t rank) const {
    const auto found = std::find_if(ranks_.begin(), ranks_.end(), [&](const Rank& one) { return one.machine == ranks_[rank].machine; });
    return static_cast<int>(found - ranks_.begin());
  }

  /// Whether some rank has each row of the last step. Rows that have come but were not taken do not count.
  bool all_rows_are_held() {
    std::set<Row> held;
    for (Rank& one : ranks_)
      for (const Place& place : one.held)
        for (const auto& [row, step] : place)
          if (step == step_ && one.step == step_) held.insert(row);
    return held.size() == rows_of_shard({{1}, {0}, 1}, 0).size();
  }

  void move(const std::vector<RowMove>& moves) {
    for (const RowMove& move : moves)
      for (std::int64_t row = move.rows.begin; row < move.rows.end; ++row) {
        Rank &source = ranks_[static_cast<std::size_t>(move.source)], &target = ranks_[static_cast<std::size_t>(move.target)];
        const Place& from = source.place(false, move.source_place);
        const auto found = from.find({move.tensor, row});
        REQUIRE(found != from.end());
        REQUIRE(found->second == step_);
        target.place(target.holdings.are_coming(), move.target_place)[found->first] = found->second;
      }
  }

  void take() {
    for (Rank& one : ranks_) {
      if (one.holdings.are_coming()) one.held = std::exchange(one.next, {});
      one.holdings.take();
    }
  }

  /// Each rank has the rows that all believe it has, and no others.
  void check() {
    for (std::size_t rank = 0; rank < size(); ++rank) {
      Rank& one = ranks_[rank];
      const RowHolding& holding = one.holdings.held();
      REQUIRE(holding.spread == ranks_.front().holdings.held().spread);
      REQUIRE(holding.missing == ranks_.front().holdings.held().missing);
      for (int at = 0; at < 2; ++at) {
        std::vector<Row> expected = rows_of_shard(holding.spread, holding.spread.shard_at(static_cast<int>(rank), at));
        expected.erase(std::remove_if(expected.begin(), expected.end(),
                                      [&](const Row& row) {
                                        return at == 1 &&
                                               std::any_of(holding.missing.begin(), holding.missing.end(), [&](const RowMove& move) {
                                                 return move.target == static_cast<int>(rank) && move.tensor == row.first &&
                                                        move.rows.begin <= row.second && row.second < move.rows.end;
                                               });
                                      }),
                       expected.end());
        std::vector<Row> has;
        for (const auto& [row, step] : one.place(false, at)) {
          has.push_back(row);
          REQUIRE(step == step_);
        }
        std::sort(expected.begin(), expected.end());
        REQUIRE(has == expected);
      }
    }
  }

  SimRandom& random_;
  std::vector<Rank> ranks_;
  std::uint64_t step_ = 0;
  bool is_fresh_ = false;
};

std::string any_text(SimRandom& random) {
  const RowSpread spread({1, 0, 2.5}, {0, 1, 1}, 2);
  std::vector<RowMove> missing(random.below(3), RowMove{1, {0, 2}, 2, 0, 0, 1});
  return RowStanding{{spread, 2, missing, static_cast<std::int64_t>(random.below(9)) - 1, true}, random.below(99), false, 0.5, 1}.text();
}

}  // namespace

TEST_CASE("whatever ranks are lost and join, all know alike who holds which rows, and say so where nobody does") {
  int lost = 0;
  for (const auto seed : seeds(2000)) {
    CAPTURE(seed);
    SimRandom random(seed);
    Ranks ranks(static_cast<int>(1 + random.below(6)), random);
    bool is_lost = ranks.enter();
    for (int world = 0; world < 6 && !is_lost; ++world) {
      for (auto steps = random.below(6); steps > 0; --steps) ranks.take_step((1 + random.below(3)) * kRowBytes);
      for (auto losses = random.below(2 + random.below(2)); losses > 0 && ranks.size() > 1; --losses)
        ranks.lose(random.below(ranks.size()));
      for (auto joins = random.below(3); joins > 0 && ranks.size() < 7; --joins) ranks.join();
      is_lost = ranks.enter();
    }
    if (is_lost) {
      ++lost;
      continue;
    }
    for (int step = 0; step < 11; ++step) ranks.take_step(kRowBytes);
    CHECK(ranks.are_twofold());
  }
  CHECK((lost > 0 || share_of(100) < 100));
}

TEST_CASE("what a rank tells of its rows is parsed where it is whole, and nothing of it where it is not") {
  for (const auto seed : seeds(2000)) {
    CAPTURE(seed);
    SimRandom random(seed);
    const std::string text = any_text(random);
    const auto parsed = RowStanding::parse(text, 2);
    REQUIRE(parsed);
    CHECK(parsed->text() == text);
    if (!parsed->holding.missing.empty()) CHECK_FALSE(RowStanding::parse(text, 1));
    CHECK_FALSE(RowStanding::parse(text.substr(0, random.below(15 * 8)), 2));
    std::string other = text;
    for (auto count = 1 + random.below(3); count > 0; --count) other[random.below(other.size())] = static_cast<char>(random.below(256));
    // What has come from elsewhere is used as an index.
    if (const auto one = RowStanding::parse(other, 2)) {
      CHECK(one->holding.rank >= 0);
      CHECK(one->holding.rank < one->holding.spread.ranks());
      for (const RowMove& move : one->holding.missing) {
        CHECK(move.tensor < 2);
        CHECK(std::min(move.source, move.target) >= 0);
        CHECK(std::max(move.source, move.target) < one->holding.spread.ranks());
      }
    }
  }
}
