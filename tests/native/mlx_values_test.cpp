#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <ringlet/ringlet.hpp>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

// Checks the results for values at the edge of their dtype, beside the results of MLX.

using namespace ringlet;
using test::expect;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

constexpr Float16 kHalf40000{0x78e2}, kHalfInfinity{0x7c00};
constexpr BFloat16 kBrain1{0x3f80}, kBrain256{0x4380}, kBrain260{0x4382};

/// With these numbers of two-byte elements an all-reduce takes each of its algorithms.
constexpr std::size_t kCounts[] = {5, 50'000, 300'000};
constexpr std::size_t kSmallCounts[] = {5, 50'000};

template <class T>
void expect_all(const std::vector<T>& values, T wanted, const std::string& what) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(values[i] == wanted)) throw std::runtime_error(what + ": element " + std::to_string(i) + " of " + std::to_string(values.size()));
}

}  // namespace

TEST_CASE("nothing can be summed, gathered, averaged") {
  test::run_ranks(3, [](Group& world) {
    std::vector<float> none;
    world.all_sum(none);
    world.all_max(none);
    expect(world.all_gather(none).shape() == Shape{0}, "all_gather");
    expect(world.all_gather(Tensor(DType::f32, Shape{2, 0})).shape() == Shape{6, 0}, "an axis behind it");
    expect(world.sum_scatter(none).shape() == Shape{0}, "sum_scatter");
    average_gradients(world, Tree{{"none", none}});
    average_gradients(world, Tree{});
  });
}

TEST_CASE("fewer elements than ranks are summed") {
  test::run_ranks(8, [](Group& world) {
    for (const std::size_t count : {1, 7, 9}) {
      std::vector<double> values(count, 1.0 + world.rank());
      world.all_sum(values);
      expect_all(values, 36.0, "sum");
    }
  });
}

TEST_CASE("a sum of booleans is OR") {
  test::run_ranks(3, [](Group& world) {
    std::uint8_t bytes[] = {0, world.rank() == 1, 1};
    world.all_sum(TensorView(bytes, DType::boolean, 3));
    expect(bytes[0] == 0 && bytes[1] == 1 && bytes[2] == 1, "OR, and 1 + 1 + 1 is 1");
  });
}

TEST_CASE("integers wrap: 100 + 100 is -56 in i8") {
  test::run_ranks(2, [](Group& world) {
    std::vector<std::int8_t> values(10, 100);
    world.all_sum(values);
    expect_all(values, static_cast<std::int8_t>(-56), "i8");
    std::vector<std::uint16_t> wide(10, 40'000);
    world.all_sum(wide);
    expect_all(wide, static_cast<std::uint16_t>(80'000 - 65'536), "u16");
  });
}

TEST_CASE("a sum of f16 overflows as in MLX: 40000 + 40000 is infinite") {
  test::run_ranks(2, [](Group& world) {
    for (const std::size_t count : kCounts) {
      std::vector<Float16> values(count, kHalf40000);
      world.all_sum(values);
      expect_all(values, kHalfInfinity, "sum");
    }
  });
}

TEST_CASE("a mean of f16 does not overflow, in MLX it does: it is summed in f32, or divided first") {
  test::run_ranks(2, [](Group& world) {
    for (const std::size_t count : kCounts) {
      std::vector<Float16> values(count, kHalf40000), out(count);
      world.all_mean(values, out);
      expect_all(out, kHalf40000, "all_mean");
      world.all_mean_async(values, values).wait();
      expect_all(values, kHalf40000, "all_mean in place");
      average_gradients(world, Tree{{"g", values}});
      expect_all(values, kHalf40000, "average_gradients");
      average_gradients(world, Tree{{"g", values}}, {.weight = 1.0});
      expect_all(values, kHalf40000, "weighted average");
    }
  });
}

TEST_CASE("FSDP's averages of f16 do not overflow") {
  test::run_ranks(2, [](Group& world) {
    std::vector<Float16> gradient(1000, kHalf40000), parameter(1000);
    SGD optimizer(1.0);
    fsdp_apply_gradients(world, Tree{{"w", gradient}}, Tree{{"w", parameter}}, optimizer);
    expect_all(parameter, Float16{static_cast<std::uint16_t>(kHalf40000.bits | 0x8000)}, "minus the mean");
  });
}

TEST_CASE("complex numbers are ordered by real, then by imaginary part") {
  test::run_ranks(2, [](Group& world) {
    const bool first = world.rank() == 0;
    std::vector<Complex64> highest{first ? Complex64(1, 9) : Complex64(2, -9), first ? Complex64(3, 4) : Complex64(3, 5)};
    std::vector<Complex64> lowest = highest;
    world.all_max(highest);
    world.all_min(lowest);
    expect(highest == std::vector<Complex64>{{2, -9}, {3, 5}}, "max");
    expect(lowest == std::vector<Complex64>{{1, 9}, {3, 4}}, "min");
  });
}

TEST_CASE("a NaN of any rank comes through max and min at every position, in MLX at some") {
  for (const int ranks : {2, 3}) {
    test::run_ranks(ranks, [](Group& world) {
      for (int culprit = 0; culprit < world.size(); ++culprit)
        for (const std::size_t count : {std::size_t{4}, std::size_t{30'000}, std::size_t{150'000}}) {
          std::vector<float> highest(count, world.rank() == culprit ? kNan : 1.f), lowest = highest;
          world.all_max(highest);
          world.all_min(lowest);
          for (std::size_t i = 0; i < count; ++i)
            expect(std::isnan(highest[i]) && std::isnan(lowest[i]),
                   [&] { return "element " + std::to_string(i) + " of " + std::to_string(count); });
        }
    });
  }
}

TEST_CASE("bf16 256+1+1+1 up to 256 KiB is 260 at every index, in MLX 256 at some: it is added in f32") {
  test::run_ranks(4, [](Group& world) {
    for (const std::size_t count : kSmallCounts) {
      std::vector<BFloat16> values(count, world.rank() == 0 ? kBrain256 : kBrain1);
      world.all_sum(values);
      expect_all(values, kBrain260, "sum");
    }
  });
}

TEST_CASE("bf16 256+1+1+1 above 256 KiB is rounded at each hop as in MLX, with the same bits on every rank") {
  test::run_ranks(4, [](Group& world) {
    std::vector<BFloat16> values(kCounts[2], world.rank() == 0 ? kBrain256 : kBrain1);
    world.all_sum(values);
    const auto count = [&](BFloat16 value) { return std::count(values.begin(), values.end(), value); };
    expect(count(kBrain256) > 0 && count(kBrain260) > 0, "it depends on the index");
    const Tensor all = world.all_gather(values);
    const auto bits = all.values<BFloat16>();
    for (std::size_t r = 0; r < 4; ++r)
      expect(std::equal(values.begin(), values.end(), bits.begin() + static_cast<std::ptrdiff_t>(r * values.size())), "bits");
  });
}

TEST_CASE("views with gaps are taken as they are") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> memory(6, static_cast<float>(world.rank() + 1));
    world.all_sum(TensorView(memory.data(), DType::f32, Shape{3}, std::array<std::int64_t, 1>{2}));
    const float own = static_cast<float>(world.rank() + 1);
    expect(memory == std::vector<float>{3, own, 3, own, 3, own}, "every second element");
  });
}
