// Tests of error feedback over many steps: what rounding leaves, of the ranks' gradients and of their means, is not lost.
#include <catch2/catch.hpp>

#include "tests/core/averages.hpp"
#include "tests/core/operation.hpp"
#include "tests/core/parts_loop.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// Gradients with large and small elements, which ranks average with feedback step after step.
class LongAverages {
 public:
  LongAverages(SimRandom& random, const Wire& wire, int ranks) : random_(random), options_{.communication_type = wire}, ranks_(ranks) {
    options_.all_reduce_size = pick<std::int64_t>(random, {0, 100, 400, 32 << 20});
    const std::size_t tensors = 1 + random.below(5);
    for (std::size_t t = 0; t < tensors; ++t) counts_.push_back(1 + random.below(400));
    for (const std::size_t count : counts_) sums_.emplace_back(count), means_.emplace_back(count);
  }

  void step(ProcedureWorld& world) {
    // Each rank's share, in quarters, which are exact.
    std::vector<double> weights(static_cast<std::size_t>(ranks_), 0.25);
    weights.back() = 1 - 0.25 * (ranks_ - 1);
    std::vector<std::vector<std::vector<float>>> values(weights.size());
    for (std::size_t rank = 0; rank < values.size(); ++rank) {
      for (std::size_t t = 0; t < counts_.size(); ++t) {
        values[rank].emplace_back(counts_[t]);
        for (std::size_t i = 0; i < counts_[t]; ++i) {
          const double largest = i % 20 == 0 ? kLargest : 0.02;
          values[rank][t][i] = static_cast<float>(largest * static_cast<double>(random_.below(1000)) / 1000);
          sums_[t][i] += values[rank][t][i] * weights[rank];
        }
      }
    }
    REQUIRE(world.run([&](int rank) {
      Tree tree;
      const auto r = static_cast<std::size_t>(rank);
      for (std::size_t t = 0; t < counts_.size(); ++t) tree.add("g" + std::to_string(t), values[r][t]);
      AverageOptions options = options_;
      options.weight = weights[r];
      return average(world, rank, tree, options);
    }));
    REQUIRE(world.failure() == "");
    for (std::size_t t = 0; t < counts_.size(); ++t)
      for (std::size_t i = 0; i < counts_[t]; ++i) means_[t][i] += values[0][t][i];
  }

  /// Checks that what is missing of the sum of all steps' means is no more than what one step may leave.
  void check() const {
    const double codes = options_.communication_type->blocks() == BlockFormat::int8 ? 127 : 7;
    // Steps are powers of two, and residuals make the largest elements larger. Each of the two roundings leaves half a step.
    const double step = 2 * kLargest * (1 + 2 / codes) / codes;
    for (std::size_t t = 0; t < counts_.size(); ++t) {
      for (std::size_t i = 0; i < counts_[t]; ++i) {
        INFO("tensor " << t << " of " << counts_[t] << " elements, element " << i);
        REQUIRE(means_[t][i] == Approx(sums_[t][i]).margin(step + 1e-3));
      }
    }
  }

 private:
  static constexpr double kLargest = 4;

  SimRandom& random_;
  AverageOptions options_;
  const int ranks_;
  std::vector<std::size_t> counts_;
  std::vector<std::vector<double>> sums_, means_;
};

}  // namespace

TEST_CASE("with feedback nothing is lost, whatever the buckets, and whoever owns which part, also where that changes") {
  const auto seed = GENERATE(from_range(seeds(30)));
  CAPTURE(seed);
  SimRandom random(seed * 13 + 3);
  const int natives = static_cast<int>(2 + random.below(3)), guests = static_cast<int>(random.below(2));
  CAPTURE(natives, guests);
  ProcedureWorld world(parts_setup(natives, guests, seed));
  const Wire wire = Wire::in_blocks(pick(random, {BlockFormat::int8, BlockFormat::int4}), {.feedback = true, .least_elements = 0});
  LongAverages averages(random, wire, world.size());
  for (int step = 0; step < 60; ++step) {
    if (random.chance(200)) world.group().world(0).parts().change(random_speeds(random, natives, guests), [](bool) {});
    averages.step(world);
  }
  averages.check();
  world.group().close_cleanly();
}
