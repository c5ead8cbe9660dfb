#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "core/sharding/row_spread.hpp"

using namespace ringlet;

namespace {

std::vector<int> numbers(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

RowSpread even(int ranks, int copies) { return {std::vector<double>(static_cast<std::size_t>(ranks), 1.0), numbers(ranks), copies}; }

const Tree& tensors() {
  static const Tree kTensors{{"w", {nullptr, DType::f32, Shape{11, 3}}},
                             {"few", {nullptr, DType::f32, Shape{2}}},
                             {"scalar", {nullptr, DType::f32, Shape{}}},
                             {"none", {nullptr, DType::f32, Shape{0, 4}}}};
  return kTensors;
}

/// Each rank's rows of each tensor in each place are moved there once, from a place that has them.
void check_moves(const RowSpread& before, const std::vector<int>& now, const RowSpread& after, const std::vector<RowMove>& moves) {
  const ShardLayout had = before.layout(tensors()), has = after.layout(tensors());
  for (std::size_t tensor = 0; tensor < tensors().size(); ++tensor)
    for (int rank = 0; rank < after.ranks(); ++rank)
      for (int place = 0; place < after.copies(); ++place) {
        const int shard = after.shard_at(rank, place);
        if (shard < 0) continue;
        const RowRange wanted = has.rows(tensors()[tensor].name, shard);
        std::vector<int> got(static_cast<std::size_t>(wanted.count()));
        for (const RowMove& move : moves) {
          if (move.tensor != tensor || move.target != rank || move.target_place != place) continue;
          const auto source = std::find(now.begin(), now.end(), move.source);
          REQUIRE(source != now.end());
          const RowRange there =
              had.rows(tensors()[tensor].name, before.shard_at(static_cast<int>(source - now.begin()), move.source_place));
          CHECK((there.begin <= move.rows.begin && move.rows.end <= there.end));
          for (std::int64_t row = move.rows.begin; row < move.rows.end; ++row) ++got[static_cast<std::size_t>(row - wanted.begin)];
        }
        CHECK(std::all_of(got.begin(), got.end(), [](int count) { return count == 1; }));
      }
}

}  // namespace

TEST_CASE("each shard has its own rank and another one, on another machine where no machine has more than half of the ranks") {
  for (int ranks = 1; ranks <= 7; ++ranks)
    for (int machines = 1; machines <= ranks; ++machines)
      for (int seed = 0; seed < 20; ++seed) {
        CAPTURE(ranks, machines, seed);
        std::vector<int> machine_of;
        for (int rank = 0; rank < ranks; ++rank) machine_of.push_back((rank * (seed + 1) + seed / 3) % machines);
        const RowSpread spread(std::vector<double>(static_cast<std::size_t>(ranks), 1.0), machine_of, 2);
        std::size_t most = 0;
        for (int machine = 0; machine < machines; ++machine)
          most = std::max(most, static_cast<std::size_t>(std::count(machine_of.begin(), machine_of.end(), machine)));
        CHECK(spread.copies() == (ranks == 1 ? 1 : 2));
        for (int shard = 0; shard < ranks; ++shard) {
          CHECK(spread.holder(shard, 0) == shard);
          if (ranks == 1) continue;
          const int second = spread.holder(shard, 1);
          CHECK((second != shard && spread.shard_at(second, 1) == shard));
          if (2 * most <= static_cast<std::size_t>(ranks))
            CHECK(machine_of[static_cast<std::size_t>(second)] != machine_of[static_cast<std::size_t>(shard)]);
        }
      }
}

TEST_CASE("a rank of weight 0 holds nothing, and is nobody's second holder") {
  const RowSpread spread({1, 0, 2, 0}, numbers(4), 2);
  CHECK((spread.holder(0, 1) == 2 && spread.holder(2, 1) == 0 && spread.holder(1, 1) == -1));
  CHECK((spread.shard_at(1, 1) == -1 && spread.shard_at(3, 1) == -1));
  CHECK(spread.layout(tensors()).count(1) == 0);
  CHECK(RowSpread({0, 1, 0}, numbers(3), 2).copies() == 1);
}

TEST_CASE("whoever goes or joins, all rows move to their holders while each shard has one left, else the lost rows are told") {
  for (int ranks = 1; ranks <= 5; ++ranks)
    for (int copies = 1; copies <= 2; ++copies)
      for (unsigned left = 1; left < 1U << ranks; ++left)
        for (int joined = 0; joined <= 2; ++joined) {
          const RowSpread before = even(ranks, copies);
          std::vector<int> now;
          int count = 0;
          for (int rank = 0; rank < ranks; ++rank) now.push_back((left >> rank & 1) != 0 ? count++ : -1);
          const RowSpread after = even(count + joined, copies);
          CAPTURE(ranks, copies, left, joined);
          const RowSource preferred = left % 2 == 0 ? RowSource::own : RowSource::first;
          std::string lost;
          const auto moves = plan_row_moves(tensors(), before, {}, now, after, preferred, lost);
          bool all_are_held = true;
          for (int shard = 0; shard < ranks; ++shard) {
            bool is_held = before.layout(tensors()).count(shard) == 0;
            for (int place = 0; place < before.copies(); ++place)
              is_held = is_held || now[static_cast<std::size_t>(before.holder(shard, place))] >= 0;
            all_are_held = all_are_held && is_held;
          }
          REQUIRE(moves.has_value() == all_are_held);
          CHECK(lost.empty() == all_are_held);
          if (moves) check_moves(before, now, after, *moves);
        }
  std::string lost;
  CHECK_FALSE(plan_row_moves(tensors(), even(3, 2), {}, std::vector<int>{0, -1, -1}, even(1, 2), RowSource::own, lost));
  CHECK(lost == "the rows 4 to 8 of 'w'");
}

TEST_CASE("a second holder takes its own rows, or the first one's where they may differ") {
  std::string lost;
  const RowSpread spread = even(2, 2);
  const auto sources = [&](RowSource preferred, const std::vector<int>& now, const RowSpread& after) {
    std::vector<int> ranks;
    const auto moves = plan_row_moves({{"few", {nullptr, DType::f32, Shape{2}}}}, spread, {}, now, after, preferred, lost);
    REQUIRE(moves);
    for (const RowMove& move : *moves) ranks.push_back(move.source);
    return ranks;
  };
  // Of rank 0 the first and the second row, then of rank 1 the second and the first one.
  CHECK(sources(RowSource::own, {0, 1}, spread) == std::vector<int>{0, 0, 1, 1});
  CHECK(sources(RowSource::first, {0, 1}, spread) == std::vector<int>{0, 1, 1, 0});
  CHECK(sources(RowSource::first, {-1, 0}, even(1, 2)) == std::vector<int>{0, 0});
}

TEST_CASE("rows that a second holder has not got yet are lost with the first one, and nobody takes them from the second") {
  const RowSpread spread = even(4, 2);
  // Rank 2 is the second holder of the rows 3 to 6 of 'w', of which it lacks two; rank 0 of the rows 9 to 11.
  const std::vector<RowMove> missing{{0, {4, 6}, 1, 0, 2, 1}, {0, {9, 10}, 3, 0, 0, 1}};
  const auto plan = [&](const std::vector<int>& now, std::string& lost) {
    const int ranks = static_cast<int>(std::count_if(now.begin(), now.end(), [](int rank) { return rank >= 0; }));
    const auto moves = plan_row_moves(tensors(), spread, missing, now, even(ranks, 2), RowSource::own, lost);
    if (moves) check_moves(spread, now, even(ranks, 2), *moves);
    return moves;
  };
  std::string lost;
  CHECK_FALSE(plan({0, -1, 1, 2}, lost));
  CHECK(lost == "the rows 4 to 6 of 'w'");
  CHECK_FALSE(plan({0, 1, 2, -1}, lost));
  CHECK(lost == "the rows 9 to 10 of 'w'");
  for (const std::vector<int>& now : {std::vector{-1, 0, 1, 2}, {0, 1, -1, 2}, {0, 1, 2, 3}}) {
    const auto moves = plan(now, lost);
    REQUIRE(moves);
    for (const RowMove& move : *moves)
      for (const RowMove& lacks : missing)
        if (move.tensor == 0 && move.source == now[static_cast<std::size_t>(lacks.target)] && move.source_place == 1)
          CHECK((move.rows.end <= lacks.rows.begin || move.rows.begin >= lacks.rows.end));
  }
}

TEST_CASE("moves are taken in slices of so many bytes to and from each rank, all of them once") {
  const std::vector<std::size_t> row_bytes{24, 8, 8, 0};
  const RowSpread before = even(4, 2), after = even(3, 2);
  std::string lost;
  const auto all = plan_row_moves(tensors(), before, {}, std::vector<int>{-1, 0, 1, 2}, after, RowSource::own, lost);
  REQUIRE(all);
  for (const std::size_t bytes : {1, 8, 24, 50, 1000}) {
    CAPTURE(bytes);
    std::vector<RowMove> waiting = *all, taken;
    while (!waiting.empty()) {
      REQUIRE(taken.size() < 1000);
      const auto slice = take_row_moves(waiting, row_bytes, 3, bytes);
      REQUIRE_FALSE(slice.empty());
      std::vector<std::size_t> sent(3), received(3);
      for (const RowMove& move : slice) {
        sent[static_cast<std::size_t>(move.source)] += row_bytes[move.tensor] * static_cast<std::size_t>(move.rows.count());
        received[static_cast<std::size_t>(move.target)] += row_bytes[move.tensor] * static_cast<std::size_t>(move.rows.count());
        taken.push_back(move);
      }
      // One row goes in any case.
      const std::size_t most = std::max(bytes, row_bytes[slice.front().tensor]);
      for (int rank = 0; rank < 3; ++rank)
        CHECK(std::max(sent[static_cast<std::size_t>(rank)], received[static_cast<std::size_t>(rank)]) <= most);
    }
    check_moves(before, {-1, 0, 1, 2}, after, taken);
  }
}
