#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/plan/call.hpp"
#include "core/plan/part_layout.hpp"

using namespace ringlet;

TEST_CASE("parts and rows follow each other and cover everything") {
  for (int size = 1; size <= 9; ++size) {
    for (std::size_t count = 0; count <= 200; ++count) {
      std::size_t part_end = 0;
      std::size_t row_end = 0;
      for (int rank = 0; rank < size; ++rank) {
        const ElementRange part = part_of(count, size, rank);
        REQUIRE(part.begin == part_end);
        REQUIRE(part.end >= part.begin);
        REQUIRE((part.end == count || part.end % kPartGranule == 0));
        part_end = part.end;
        const ElementRange rows = rows_of(count, size, rank);
        REQUIRE(rows.begin == row_end);
        const auto ranks = static_cast<std::size_t>(size);
        REQUIRE(rows.count() == count / ranks + (static_cast<std::size_t>(rank) < count % ranks ? 1 : 0));
        row_end = rows.end;
      }
      REQUIRE(part_end == count);
      REQUIRE(row_end == count);
    }
  }
}

TEST_CASE("parts of the largest counts do not overflow") {
  constexpr std::size_t kCount = SIZE_MAX / 32;
  CHECK(part_of(kCount, 1000, 999).end == kCount);
  CHECK(part_of(kCount, 1000, 500).begin == part_of(kCount, 1000, 499).end);
}

TEST_CASE("weighted parts follow each other, begin at granules and cover everything") {
  const std::vector<std::vector<std::uint32_t>> all_weights{{1}, {1, 1}, {0, 5}, {5, 0}, {1, 0, 3, 0}, {1024, 1, 724}, {0, 0, 7}};
  for (const auto& weights : all_weights) {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::size_t count = 0; count <= 700; ++count) {
      std::size_t end = 0;
      for (std::size_t owner = 0; owner < weights.size(); ++owner) {
        const ElementRange part = part_of(count, weights, static_cast<int>(owner));
        REQUIRE(part.begin == end);
        REQUIRE(part.end >= part.begin);
        REQUIRE((part.end == count || part.end % kPartGranule == 0));
        if (weights[owner] == 0) REQUIRE(part.count() == 0);
        // Each bound is less than a granule from the exact one, and the last granule may be cut.
        const double exact = static_cast<double>(count) * weights[owner] / total;
        REQUIRE(std::abs(static_cast<double>(part.count()) - exact) <= 2.0 * kPartGranule);
        end = part.end;
      }
      REQUIRE(end == count);
    }
  }
}

TEST_CASE("equal weights give equal parts, and weights of the largest counts do not overflow") {
  for (int size = 1; size <= 9; ++size) {
    const std::vector<std::uint32_t> weights(static_cast<std::size_t>(size), 1024);
    for (std::size_t count = 0; count <= 300; ++count)
      for (int rank = 0; rank < size; ++rank) REQUIRE(part_of(count, weights, rank) == part_of(count, size, rank));
  }
  constexpr std::size_t kCount = SIZE_MAX / 32;
  const std::vector<std::uint32_t> weights(100'000, 1024);
  CHECK(part_of(kCount, weights, 99'999).end == kCount);
  CHECK(part_of(kCount, weights, 50'000).begin == part_of(kCount, weights, 49'999).end);
}

TEST_CASE("the algorithm follows from kind, size and bytes alone") {
  const AlgorithmLimits limits{1000, 5000};
  using Kind = CollectiveKind;
  CHECK(choose_algorithm(Kind::all_reduce, 1000, 2, limits) == Algorithm::exchange);
  CHECK(choose_algorithm(Kind::all_reduce, 1001, 2, limits) == Algorithm::direct);
  CHECK(choose_algorithm(Kind::all_reduce, 333, 4, limits) == Algorithm::doubling);
  CHECK(choose_algorithm(Kind::all_reduce, 100, 8, limits) == Algorithm::doubling);
  CHECK(choose_algorithm(Kind::all_reduce, 100, 6, limits) == Algorithm::doubling);
  CHECK(choose_algorithm(Kind::all_reduce, 334, 4, limits) == Algorithm::direct);
  CHECK(choose_algorithm(Kind::all_reduce, 5000, 4, limits) == Algorithm::direct);
  CHECK(choose_algorithm(Kind::all_reduce, 5001, 4, limits) == Algorithm::ring);
  CHECK(choose_algorithm(Kind::reduce_scatter, 1, 2, limits) == Algorithm::direct);
  CHECK(choose_algorithm(Kind::all_gather, 5001, 2, limits) == Algorithm::ring);
  CHECK(choose_algorithm(Kind::broadcast, 0, 2, limits) == Algorithm::direct);
  CHECK(choose_algorithm(Kind::reduce, 5000, 4, limits) == Algorithm::direct);
  CHECK(choose_algorithm(Kind::reduce, 5001, 4, limits) == Algorithm::ring);
  for (const auto kind : {Kind::gather, Kind::scatter, Kind::all_to_all})
    CHECK(choose_algorithm(kind, 1 << 30, 4, limits) == Algorithm::direct);
  CHECK(choose_algorithm(Kind::barrier, 0, 4, limits) == Algorithm::doubling);
  CHECK(choose_algorithm(Kind::barrier, 0, 2, limits) == Algorithm::exchange);
  CHECK(choose_algorithm(Kind::barrier, 0, 3, limits) == Algorithm::exchange);
  CHECK(choose_algorithm(Kind::barrier, 0, 9, limits) == Algorithm::doubling);
}

TEST_CASE("given parts follow each other") {
  const std::vector<std::uint64_t> counts{3, 0, 5};
  CHECK(part_of(counts, 0) == ElementRange{0, 3});
  CHECK(part_of(counts, 1) == ElementRange{3, 3});
  CHECK(part_of(counts, 2) == ElementRange{3, 8});
}
