#include <catch2/catch.hpp>
#include <cmath>

#include "simd/kernels.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using Catch::Matchers::Contains;
using test::expect;

namespace {

std::vector<float> gradient(int rank, std::size_t index, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(rank + 1) * 0.5f + static_cast<float>(index) + static_cast<float>(i % 7) * 0.25f;
  return values;
}

/// Returns gradients of several sizes, as one rank has them.
std::vector<std::vector<float>> gradients(int rank) {
  std::vector<std::vector<float>> all;
  for (const std::size_t count : {10, 0, 1000, 3, 70'000, 250, 1}) all.push_back(gradient(rank, all.size(), count));
  return all;
}

std::vector<TensorView> views(std::vector<std::vector<float>>& tensors) { return {tensors.begin(), tensors.end()}; }

float mean_at(int ranks, std::size_t index, std::size_t i) {
  float sum = 0;
  for (int r = 0; r < ranks; ++r) sum += gradient(r, index, i + 1)[i];
  return sum / static_cast<float>(ranks);
}

}  // namespace

TEST_CASE("averages are the means for every bucket size") {
  const int ranks = GENERATE(2, 3);
  const std::int64_t bytes = GENERATE(0, 1, 4096, 32 << 20);
  test::run_ranks(ranks, [&](Group& world) {
    auto tensors = gradients(world.rank());
    average_gradients(world, views(tensors), {.all_reduce_size = bytes});
    for (std::size_t t = 0; t < tensors.size(); ++t)
      for (std::size_t i = 0; i < std::min<std::size_t>(tensors[t].size(), 50); ++i)
        expect(tensors[t][i] == mean_at(ranks, t, i), "tensor " + std::to_string(t));
  });
}

TEST_CASE("a narrower communication type averages to its precision, in place of no dtype") {
  const DType type = GENERATE(DType::f16, DType::bf16);
  const std::int64_t bytes = GENERATE(0, 4096, 32 << 20);  // 4096: the largest tensor goes in pieces
  test::run_ranks(3, [&](Group& world) {
    auto tensors = gradients(world.rank());
    average_gradients(world, views(tensors), {.all_reduce_size = bytes, .communication_type = type});
    const double tolerance = type == DType::f16 ? 2e-3 : 2e-2;
    for (std::size_t t = 0; t < tensors.size(); ++t)
      for (std::size_t i = 0; i < std::min<std::size_t>(tensors[t].size(), 50); ++i)
        expect(std::abs(tensors[t][i] - mean_at(3, t, i)) <= tolerance * std::abs(mean_at(3, t, i)), "tensor " + std::to_string(t));
    // Every rank must hold the same bits.
    std::vector<float> all(3 * tensors[4].size());
    world.all_gather(tensors[4], all);
    for (int r = 0; r < 3; ++r)
      expect(std::equal(tensors[4].begin(), tensors[4].end(), all.begin() + r * static_cast<std::ptrdiff_t>(tensors[4].size())), "bits");
  });
}

TEST_CASE("weights make it the mean over samples") {
  const std::optional<DType> type = GENERATE(std::optional<DType>(), std::optional(DType::bf16));
  const std::int64_t bytes = GENERATE(0, 32 << 20);
  test::run_ranks(3, [&](Group& world) {
    const std::array<double, 3> weights{1, 0, 7};
    std::vector<float> values(100, static_cast<float>(4 * world.rank()));
    std::vector<TensorView> one{values};
    average_gradients(world, one,
                      {.all_reduce_size = bytes, .communication_type = type, .weight = weights[static_cast<std::size_t>(world.rank())]});
    for (const float value : values) expect(std::abs(value - 7.0f) < (type ? 0.05f : 1e-5f), "weighted mean " + std::to_string(value));
  });
}

TEST_CASE("dtypes may be mixed: each has its buckets") {
  test::run_ranks(2, [](Group& world) {
    const float mine = world.rank() == 0 ? 1.0f : 3.0f;
    std::vector<float> a(10, mine), c(10, mine);
    std::vector<double> b(10, mine);
    std::vector<Complex64> d(3, {mine, -mine});
    std::vector<Float16> e(5);
    std::vector<float> plain(5, mine);
    simd::find("")->cast(DType::f32, DType::f16)(reinterpret_cast<std::byte*>(e.data()), reinterpret_cast<std::byte*>(plain.data()), 5);
    GradientAverager averager(world, {.all_reduce_size = 64});
    for (const TensorView& view : {TensorView(a), TensorView(b), TensorView(c), TensorView(d), TensorView(e)}) averager.add(view);
    averager.finish();
    expect(a[9] == 2 && b[9] == 2 && c[0] == 2 && d[2] == Complex64(2, -2) && e[4].bits == 0x4000, "means");
    // The averager can be used again.
    averager.add(a);
    averager.finish();
    expect(a[0] == 2, "second step");
  });
}

TEST_CASE("buckets start before the last gradient is there") {
  test::run_ranks(2, [](Group& world) {
    std::vector<std::vector<float>> tensors(4, std::vector<float>(50'000, 1));
    GradientAverager averager(world, {.all_reduce_size = 100'000});
    for (auto& tensor : tensors) averager.add(tensor);
    expect(averager.collectives() == 4, "started while gradients were added");
    averager.finish();
  });
}

TEST_CASE("wrong options and gradients are refused") {
  Group alone;
  CHECK_THROWS_WITH(GradientAverager(alone, {.communication_type = DType::i8}), Contains("communication_type is i8"));
  CHECK_THROWS_WITH(GradientAverager(alone, {.weight = -1.0}), Contains("weight is -1"));
  CHECK_THROWS_WITH(GradientAverager(alone, {.weight = NAN}), Contains("weight is nan"));
  GradientAverager averager(alone);
  std::vector<std::int32_t> integers(3);
  CHECK_THROWS_WITH(averager.add(integers), Contains("dtype i32"));
  CHECK_THROWS_WITH(averager.add(TensorView(nullptr, DType::f32, 2)), Contains("null"));
  std::vector<float> values{1, 2};
  averager.add(values);
  averager.finish();
  CHECK(values == std::vector<float>{1, 2});
  test::run_ranks(2, [](Group& world) {
    std::vector<float> v{1};
    GradientAverager zero(world, {.weight = 0.0});
    try {
      zero.add(v);
    } catch (const InvalidArgument& error) {
      expect(std::string(error.what()).find("at least one must be positive") != std::string::npos, "text");
      return;
    }
    throw std::runtime_error("weights of 0 were taken");
  });
}
