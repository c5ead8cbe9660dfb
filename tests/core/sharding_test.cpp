#include <catch2/catch.hpp>
#include <numeric>
#include <ringlet/error.hpp>
#include <ringlet/sharding.hpp>

using namespace ringlet;
using Catch::Matchers::Contains;

TEST_CASE("every row of every tensor is at one rank, in order, in even or weighted shares") {
  const auto ranks = GENERATE(1, 2, 3, 4, 8);
  const auto weighted = GENERATE(false, true);
  std::vector<double> weights;
  for (int rank = 0; weighted && rank < ranks; ++rank) weights.push_back(rank == 1 ? 0 : rank + 0.5);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::int64_t rows = 0; rows <= 40; ++rows) {
    CAPTURE(ranks, weighted, rows);
    const ShardLayout layout({{"w", {nullptr, DType::f32, Shape{rows, 3}}}}, ranks, weights);
    std::int64_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const RowRange range = layout.rows("w", rank);
      CHECK(range.begin == next);
      CHECK(layout.shard_shape("w", rank) == Shape{range.count(), 3});
      const double share = weighted ? weights[static_cast<std::size_t>(rank)] / total : 1.0 / ranks;
      CHECK(std::abs(static_cast<double>(range.count()) - share * static_cast<double>(rows)) <= 1.0);
      next = range.end;
    }
    CHECK(next == rows);
  }
}

TEST_CASE("shards view the rows of the full tensors") {
  std::vector<float> weight(10);
  std::vector<double> scalar(1);
  const Tree full{{"w", {weight.data(), DType::f32, Shape{5, 2}}}, {"s", {scalar.data(), DType::f64, Shape{}}}};
  const ShardLayout layout(full, 2);
  CHECK(layout.full_shape("w") == Shape{5, 2});
  CHECK(layout.rows("w", 0) == RowRange{0, 3});
  const Tree second = layout.shard(full, 1);
  CHECK(second.at("w").data() == reinterpret_cast<std::byte*>(weight.data() + 6));
  CHECK(second.at("w").shape() == Shape{2, 2});
  CHECK(second.at("w").contiguous());
  CHECK(second.at("s").shape() == Shape{0});
  CHECK(layout.shard(full, 0).at("s").shape() == Shape{1});
  CHECK(layout.count(0) == 7);
  CHECK(layout.count(1) == 4);
}

TEST_CASE("rows of a strided tensor keep its strides") {
  std::vector<float> memory(12);
  const Tree full{{"w", {memory.data(), DType::f32, Shape{4, 2}, std::array<std::int64_t, 2>{3, 1}}}};
  const TensorView rows = ShardLayout(full, 2).shard(full, 1).at("w");
  CHECK(rows.data() == reinterpret_cast<std::byte*>(memory.data() + 6));
  CHECK_FALSE(rows.contiguous());
}

TEST_CASE("layouts refuse what does not fit") {
  std::vector<float> weight(6);
  const Tree full{{"w", weight}};
  CHECK_THROWS_WITH(ShardLayout(full, 0), Contains("0 ranks"));
  CHECK_THROWS_WITH(ShardLayout(full, 2, std::array{1.0}), Contains("1 shard weights for 2 ranks"));
  CHECK_THROWS_WITH(ShardLayout(full, 2, std::array{1.0, -1.0}), Contains("rank 1 is -1"));
  CHECK_THROWS_WITH(ShardLayout(full, 2, std::array{0.0, 0.0}), Contains("at least one"));
  const ShardLayout layout(full, 2);
  CHECK_THROWS_WITH(layout.rows("v", 0), Contains("'v'"));
  CHECK_THROWS_WITH(layout.rows("w", 2), Contains("rank 2"));
  CHECK_THROWS_WITH(layout.shard({{"w", std::span(weight).first(5)}}, 0), Contains("(5,)") && Contains("(6,)"));
}
