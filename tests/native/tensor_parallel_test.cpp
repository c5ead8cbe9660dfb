#include <catch2/catch.hpp>
#include <numeric>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using test::expect;
using test::failure_of;

namespace {

using Matrix = std::vector<double>;

Matrix numbered(std::size_t count, double scale) {
  Matrix values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<double>(i) * scale + 1.0);
  return values;
}

/// Returns the product of a (m x k) and the transposed b (n x k).
Matrix times_transposed(const Matrix& a, const Matrix& b, std::size_t m, std::size_t n, std::size_t k) {
  Matrix out(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t x = 0; x < k; ++x) out[i * n + j] += a[i * k + x] * b[j * k + x];
  return out;
}

/// Returns the product of a (m x k) and b (k x n).
Matrix times(const Matrix& a, const Matrix& b, std::size_t m, std::size_t n, std::size_t k) {
  Matrix out(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t x = 0; x < k; ++x) out[i * n + j] += a[i * k + x] * b[x * n + j];
  return out;
}

void expect_close(const Matrix& a, const Matrix& b, const std::string& what) {
  expect(a.size() == b.size(), what + ": size");
  for (std::size_t i = 0; i < a.size(); ++i) expect(std::abs(a[i] - b[i]) < 1e-12, what);
}

Matrix to_matrix(const Tensor& tensor) { return {tensor.values<double>().begin(), tensor.values<double>().end()}; }

}  // namespace

TEST_CASE("two sharded linear layers give the output and the input's gradient of the whole ones") {
  const int ranks = GENERATE(1, 2, 4);
  constexpr std::size_t kBatch = 3, kIn = 5, kHidden = 8, kOut = 6;
  test::run_ranks(ranks, [&](Group& world) {
    Matrix w1 = numbered(kHidden * kIn, 0.7), w2 = numbered(kOut * kHidden, 0.3);
    Matrix x = numbered(kBatch * kIn, 0.9);
    const Matrix dy = numbered(kBatch * kOut, 1.3);
    const Matrix whole_y = times_transposed(times_transposed(x, w1, kBatch, kHidden, kIn), w2, kBatch, kOut, kHidden);
    const Matrix whole_dx = times(times(dy, w2, kBatch, kHidden, kOut), w1, kBatch, kIn, kHidden);

    const std::size_t hidden = kHidden / static_cast<std::size_t>(ranks);
    const Matrix own1 = to_matrix(shard_axis(world, {w1.data(), DType::f64, Shape{kHidden, kIn}}, 0));
    const Matrix own2 = to_matrix(shard_axis(world, {w2.data(), DType::f64, Shape{kOut, kHidden}}, 1));
    AllToSharded enter(world);
    ShardedToAll leave(world);
    enter.forward(x);
    Matrix y = times_transposed(times_transposed(x, own1, kBatch, hidden, kIn), own2, kBatch, kOut, hidden);
    leave.forward(y);
    expect_close(y, whole_y, "output");
    Matrix gradient = dy;
    leave.backward(gradient);
    Matrix dx = times(times(gradient, own2, kBatch, hidden, kOut), own1, kBatch, kIn, hidden);
    enter.backward_async(dx).wait();
    expect_close(dx, whole_dx, "gradient");
  });
}

TEST_CASE("fused segments are cut apart") {
  test::run_ranks(2, [](Group& world) {
    std::vector<std::int32_t> fused(8);
    std::iota(fused.begin(), fused.end(), 0);
    const Tensor shard = shard_axis(world, {fused.data(), DType::i32, Shape{8, 1}}, 0, std::array<std::int64_t, 3>{4, 2, 2});
    const auto values = shard.values<std::int32_t>();
    const std::vector<std::int32_t> first{0, 1, 4, 6}, second{2, 3, 5, 7};
    expect(std::vector(values.begin(), values.end()) == (world.rank() == 0 ? first : second), "rows of each segment");
  });
}

TEST_CASE("axes that do not divide are refused") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> values(15);
    const TensorView full(values.data(), DType::f32, Shape{5, 3});
    const auto refused = [&](std::size_t axis, std::vector<std::int64_t> segments, const std::string& wanted) {
      const std::string text = failure_of<InvalidArgument>([&] { static_cast<void>(shard_axis(world, full, axis, segments)); });
      expect(text.find(wanted) != std::string::npos, text);
    };
    refused(0, {}, "5 of axis 0 do not divide by 2 ranks");
    refused(2, {}, "axis 2 of a tensor of shape (5, 3)");
    refused(0, {2, 2}, "add up to 4, but axis 0 has 5");
    refused(0, {INT64_MAX - 1, INT64_MAX - 1}, "add up to more than the 5 of axis 0");
  });
}
