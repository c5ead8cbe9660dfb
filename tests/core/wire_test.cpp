// Tests of averages that cross the network in blocks: their bytes, which tensors are sent so, and what rounding leaves for the next step.
// Their bits are compared with those of a plain loop in order_test.cpp.
#include <algorithm>
#include <catch2/catch.hpp>

#include "simd/kernels.hpp"
#include "tests/core/averages.hpp"

using namespace ringlet;
using namespace ringlet::test;

TEST_CASE("blocks put their bytes on the links: per element and step 2(n-1)/n of a block's byte and its share of the scale") {
  const int ranks = GENERATE(2, 4);
  constexpr std::size_t kCount = 1 << 20;
  const auto bytes_per_element = [&](const std::optional<Wire>& wire) {
    ProcedureWorld world({.size = ranks, .seed = 5});
    std::vector<std::vector<float>> values(static_cast<std::size_t>(ranks), std::vector<float>(kCount, 1.f));
    const auto sent = [&] {
      std::uint64_t most = 0;
      for (int rank = 0; rank < ranks; ++rank) most = std::max(most, world.group().world(rank).state().bytes_sent);
      return most;
    };
    const std::uint64_t before = sent();
    REQUIRE(world.run(
        [&](int rank) { return average(world, rank, Tree{{"w", values[static_cast<std::size_t>(rank)]}}, {.communication_type = wire}); }));
    REQUIRE(world.failure() == "");
    for (const auto& own : values) REQUIRE(own == std::vector<float>(kCount, 1.f));
    const double each = static_cast<double>(sent() - before) / kCount;
    world.group().close_cleanly();
    return each;
  };
  const double transfers = 2.0 * (ranks - 1) / ranks;
  CHECK(bytes_per_element({}) == Approx(transfers * 4).epsilon(0.01));
  CHECK(bytes_per_element(DType::bf16) == Approx(transfers * 2).epsilon(0.01));
  CHECK(bytes_per_element(Wire::int8()) == Approx(transfers * 65 / 64).epsilon(0.01));
  CHECK(bytes_per_element(Wire::int4()) == Approx(transfers * 17 / 32).epsilon(0.01));
}

TEST_CASE("buckets of blocks have 2 MiB at most, so that encoding and decoding overlap the network") {
  WorldOptions group;
  group.size = 2;
  group.kernels = simd::find("");
  std::vector<float> large(5'000'000);
  const auto collectives = [&](const AverageOptions& options) {
    Averager averager(group, options);
    REQUIRE(averager.add(large).ok());
    averager.close();
    CHECK(asked(averager).back() == "done");
    return averager.collectives();
  };
  CHECK(collectives({.communication_type = Wire::int8()}) == 3);  // of 5.08 MB
  CHECK(collectives({.communication_type = Wire::int4()}) == 2);  // of 2.66 MB
  CHECK(collectives({.all_reduce_size = 1 << 20, .communication_type = Wire::int8()}) == 5);
  CHECK(collectives({.all_reduce_size = 0, .communication_type = Wire::int8()}) == 1);
  CHECK(collectives({.communication_type = DType::bf16}) == 1);
}

TEST_CASE("tensors below the limit are sent as bf16, those from it on in blocks, all in buckets of their own sort") {
  const BlockOptions blocks{.least_elements = 100};
  std::vector<float> small(99), large(100), other_small(99), other_large(100);
  for (const Wire& wire : {Wire::int8(blocks), Wire::int4(blocks)}) {
    ProcedureWorld world({.size = 2, .seed = 6});
    // 1 + 1/128 is a bf16 but not a multiple of a block's step where the largest element is 1.5.
    for (auto* values : {&small, &large, &other_small, &other_large}) std::fill(values->begin(), values->end(), 1.0078125F);
    for (auto* values : {&small, &large, &other_small, &other_large}) values->front() = 1.5F;
    const Tree tree{{"a", small}, {"b", large}}, other{{"a", other_small}, {"b", other_large}};
    REQUIRE(world.run([&](int rank) { return average(world, rank, rank == 0 ? tree : other, {.communication_type = wire}); }));
    REQUIRE(world.failure() == "");
    CHECK(small.back() == 1.0078125F);
    CHECK(large.back() != 1.0078125F);
    CHECK((small == other_small && large == other_large));
    world.group().close_cleanly();
  }
}

TEST_CASE("with feedback the averages of many steps add up to the gradients; without it small elements are lost for good") {
  const BlockFormat format = GENERATE(BlockFormat::int8, BlockFormat::int4);
  const bool weighted = GENERATE(false, true);
  constexpr int kSteps = 200;
  const auto summed = [&](bool feedback) {
    ProcedureWorld world({.size = 3, .seed = 7});
    std::vector<double> sum(64);
    std::vector<std::vector<float>> values(3);
    for (int step = 0; step < kSteps; ++step) {
      // One large element in each block, beside which the others round to 0.
      for (auto& own : values) {
        own.assign(64, 0.04F);
        own[0] = own[32] = 10;
      }
      REQUIRE(world.run([&](int rank) {
        AverageOptions options{.communication_type = Wire::in_blocks(format, {.feedback = feedback, .least_elements = 0})};
        if (weighted) options.weight = 1.0;
        return average(world, rank, Tree{{"w", values[static_cast<std::size_t>(rank)]}}, options);
      }));
      REQUIRE(world.failure() == "");
      for (std::size_t i = 0; i < 64; ++i) sum[i] += values[0][i];
      REQUIRE((values[0] == values[1] && values[0] == values[2]));
    }
    world.group().close_cleanly();
    return sum;
  };
  const std::vector<double> with = summed(true), without = summed(false);
  CHECK(without[5] == 0);
  // What is missing are the residuals: half a step of the blocks of each rank's third, and half a step of those of the mean.
  const double left = format == BlockFormat::int8 ? 3 * 0.02 + 0.0625 : 3 * 0.25 + 1;
  CHECK(with[5] == Approx(0.04 * kSteps).margin(left));
  CHECK(with[0] == Approx(10 * kSteps).margin(left));
}

TEST_CASE("residuals count once their step is committed") {
  WorldOptions group;
  group.size = 2;
  group.kernels = simd::find("");
  const AverageOptions options{.communication_type = Wire::int8({.feedback = true, .least_elements = 0})};
  std::vector<float> values(64);
  // Returns what this rank would send: no network changes it, so that it comes back as the average.
  const auto sent = [&](Averager& averager, bool to_the_end) {
    std::fill(values.begin(), values.end(), 0.3F);
    values[0] = 100;
    REQUIRE(averager.add(values).ok());
    averager.close();
    if (to_the_end)
      CHECK(asked(averager).back() == "done");
    else
      CHECK(std::holds_alternative<Procedure::Start>(averager.next()));
    return values[1];
  };
  SECTION("an averager's own: a step that ends is committed") {
    Averager averager(group, options);
    CHECK(sent(averager, true) == 0);
    CHECK(sent(averager, true) == 0.5F);  // of two ranks it has 0.15; so much was left, too, and the blocks' step is 0.5
    CHECK(sent(averager, false) == 0.3F);
    averager.abandon();
    CHECK(sent(averager, true) == 0);  // 0.3 - 0.5 was left by the last step that ended
  }
  SECTION("an owner's: it commits") {
    Residuals residuals;
    Averager averager(group, options, Averager::kUnbounded, &residuals);
    CHECK(sent(averager, true) == 0);
    CHECK(sent(averager, true) == 0);  // the first one was discarded
    residuals.commit();
    CHECK(sent(averager, true) == 0.5F);
    CHECK(sent(averager, true) == 0.5F);
    Averager in_the_next_world(group, options, Averager::kUnbounded, &residuals);
    CHECK(sent(in_the_next_world, true) == 0.5F);
    residuals.commit();
    CHECK(sent(in_the_next_world, true) == 0);
    residuals.clear();
    CHECK(sent(in_the_next_world, true) == 0);
    CHECK(sent(in_the_next_world, true) == 0);
  }
}
