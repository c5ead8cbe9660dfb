#include <adamw.hpp>
#include <catch2/catch.hpp>
#include <cmath>
#include <random.hpp>

using namespace train_text;

namespace {

std::vector<float> normal_values(std::size_t count, std::uint64_t seed, double deviation) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(deviation * normal_at(seed, 0, i));
  return values;
}

}  // namespace

TEST_CASE("AdamW follows the published formulas") {
  constexpr std::size_t kCount = 40;
  constexpr std::size_t kDecaying = 25;
  constexpr double kRate = 0.01;
  const AdamWOptions options{.beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.2, .max_norm = 0};
  std::vector<float> parameters = normal_values(kCount, 1, 1.0);
  std::vector<double> expected(parameters.begin(), parameters.end());
  std::vector<double> m(kCount), v(kCount);
  AdamW optimizer({{0, kDecaying, true}, {kDecaying, kCount - kDecaying, false}}, options);
  for (int step = 1; step <= 20; ++step) {
    const std::vector<float> gradients = normal_values(kCount, 100 + static_cast<std::uint64_t>(step), 0.5);
    optimizer.step(parameters, gradients, kRate);
    for (std::size_t i = 0; i < kCount; ++i) {
      const double gradient = gradients[i];
      m[i] = options.beta1 * m[i] + (1 - options.beta1) * gradient;
      v[i] = options.beta2 * v[i] + (1 - options.beta2) * gradient * gradient;
      const double m_hat = m[i] / (1 - std::pow(options.beta1, step));
      const double v_hat = v[i] / (1 - std::pow(options.beta2, step));
      const double decay = i < kDecaying ? options.weight_decay : 0.0;
      expected[i] -= kRate * (m_hat / (std::sqrt(v_hat) + options.epsilon) + decay * expected[i]);
    }
  }
  for (std::size_t i = 0; i < kCount; ++i) CHECK(static_cast<double>(parameters[i]) == Approx(expected[i]).margin(2e-6));
}

TEST_CASE("gradients above the norm count as if scaled down to it") {
  const std::vector<float> gradients = normal_values(30, 7, 3.0);
  const double norm = global_norm(gradients);
  REQUIRE(norm > 1);
  std::vector<float> scaled = gradients;
  for (float& value : scaled) value *= static_cast<float>(1 / norm);
  std::vector<float> clipped_result(30, 1.0F);
  std::vector<float> scaled_result(30, 1.0F);
  // A large epsilon, so that the size of the gradient matters.
  AdamW({{0, 30, false}}, {.epsilon = 1, .max_norm = 1}).step(clipped_result, gradients, 0.1);
  AdamW({{0, 30, false}}, {.epsilon = 1, .max_norm = 0}).step(scaled_result, scaled, 0.1);
  CHECK(clipped_result == scaled_result);
}

TEST_CASE("the global norm of values whose norm is known") {
  CHECK(global_norm({}) == 0);
  const std::vector<float> values{3, 4};
  CHECK(global_norm(values) == 5);
  CHECK(global_norm(std::vector<float>(100, 0.5F)) == Approx(5));
}

TEST_CASE("the learning rate rises to its peak and falls to its floor") {
  CHECK(learning_rate_at(0, 200, 1.0) == Approx(0.1));
  CHECK(learning_rate_at(9, 200, 1.0) == Approx(1.0));
  CHECK(learning_rate_at(10, 200, 1.0) == Approx(1.0));
  CHECK(learning_rate_at(105, 200, 1.0) == Approx(0.5));
  CHECK(learning_rate_at(199, 200, 1.0) == Approx(0.05));
  CHECK(learning_rate_at(0, 1, 1.0) == Approx(1.0));
}
