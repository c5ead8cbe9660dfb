// Tests of what each optimizer computes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/optimizers/optimizer_table.hpp"
#include "tests/core/optimizers/rules.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr std::size_t kFormulaCount = 1'003;
constexpr int kSteps = 12;

/// The bound on errors allows a few roundings for each step.
template <class T>
constexpr double kTolerance = 40 * kSteps * static_cast<double>(std::numeric_limits<T>::epsilon());

template <class T>
void follow(const Rule& rule) {
  INFO(rule.name << " in " << name_of(dtype_of<T>));
  const auto optimizer = rule.make({});
  std::vector<T> parameters = random_values_as<T>(kFormulaCount, 1, 2.0);
  std::vector<Exact> expected(kFormulaCount);
  for (std::size_t i = 0; i < kFormulaCount; ++i) expected[i].parameter = static_cast<long double>(parameters[i]);
  for (int step = 1; step <= kSteps; ++step) {
    std::vector<T> gradients = random_values_as<T>(kFormulaCount, 100 + static_cast<std::uint64_t>(step), 0.5);
    optimizer->apply_gradients({{"w", gradients}}, {{"w", parameters}});
    for (std::size_t i = 0; i < kFormulaCount; ++i) expected[i] = rule.step(expected[i], static_cast<long double>(gradients[i]), step);
  }
  const auto worst_of = [&](const T* values, auto wanted) {
    double worst = 0;
    for (std::size_t i = 0; i < kFormulaCount; ++i) {
      const long double exact = wanted(expected[i]);
      const long double error = std::abs(static_cast<long double>(values[i]) - exact) / (1 + std::abs(exact));
      worst = std::isfinite(static_cast<double>(error)) ? std::max(worst, static_cast<double>(error)) : INFINITY;
    }
    return worst;
  };
  CHECK(worst_of(parameters.data(), [](const Exact& e) { return e.parameter; }) < kTolerance<T>);
  const Tree state = optimizer->state();
  REQUIRE(state.size() == rule.slots.size());
  for (std::size_t slot = 0; slot < rule.slots.size(); ++slot) {
    CHECK(state[slot].name == "w." + rule.slots[slot]);
    const T* values = reinterpret_cast<const T*>(state[slot].values.data());
    CHECK(worst_of(values, [&](const Exact& e) { return e.slots[slot]; }) < kTolerance<T>);
  }
}

float one_parameter_after(Optimizer& optimizer, const std::vector<float>& gradients) {
  std::vector<float> parameter{1.0F};
  for (float gradient : gradients) {
    std::vector<float> one{gradient};
    optimizer.apply_gradients({{"w", one}}, {{"w", parameter}});
  }
  return parameter[0];
}

}  // namespace

TEST_CASE("every optimizer follows its formulas") {
  for_each_optimizer([](const auto& row) {
    INFO(row.name);
    CHECK(std::any_of(all_rules().begin(), all_rules().end(), [&](const Rule& rule) { return rule.name == row.name; }));
  });
  for (const Rule& rule : all_rules()) {
    follow<float>(rule);
    follow<double>(rule);
  }
}

TEST_CASE("SGD with momentum sums a geometric series") {
  SGD optimizer(0.5, {.momentum = 0.5});
  // The velocities are 1, 1.5, 1.75 and 1.875, and every number is exact.
  CHECK(one_parameter_after(optimizer, {1, 1, 1, 1}) == 1 - 0.5F * (1 + 1.5F + 1.75F + 1.875F));
  SGD nesterov(0.5, {.momentum = 0.5, .nesterov = true});
  CHECK(one_parameter_after(nesterov, {1, 1}) == 1 - 0.5F * (1.5F + 1.75F));
}

TEST_CASE("Adam under a constant gradient") {
  constexpr int kConstantSteps = 30;
  const std::vector<float> gradients(kConstantSteps, 0.25F);
  double without = 1;
  for (int step = 1; step <= kConstantSteps; ++step) without -= 0.01 * (1 - std::pow(0.9, step)) / std::sqrt(1 - std::pow(0.999, step));
  Adam plain(0.01);
  CHECK(static_cast<double>(one_parameter_after(plain, gradients)) == Approx(without).epsilon(1e-5));
  // With bias correction, each step is the learning rate itself.
  Adam corrected(0.01, {.bias_correction = true});
  CHECK(static_cast<double>(one_parameter_after(corrected, gradients)) == Approx(1 - 0.01 * kConstantSteps).epsilon(1e-5));
}

TEST_CASE("Adagrad's steps shrink with the square root") {
  Adagrad optimizer(0.1);
  const double expected = 1 - 0.1 * (1 + 1 / std::sqrt(2.0) + 1 / std::sqrt(3.0));
  CHECK(static_cast<double>(one_parameter_after(optimizer, {2, 2, 2})) == Approx(expected).epsilon(1e-6));
}

TEST_CASE("Lion's step is the learning rate, whatever the gradient's size") {
  Lion optimizer(0.125);
  CHECK(one_parameter_after(optimizer, {1e-20F, 3e10F}) == 0.75F);
  Lion still(0.125);
  CHECK(one_parameter_after(still, {0.0F}) == 1.0F);
}

TEST_CASE("defaults are MLX's") {
  CHECK(SGDOptions{}.momentum == 0);
  CHECK(SGDOptions{}.weight_decay == 0);
  CHECK(SGDOptions{}.dampening == 0);
  CHECK_FALSE(SGDOptions{}.nesterov);
  CHECK(RMSpropOptions{}.alpha == 0.99);
  CHECK(RMSpropOptions{}.eps == 1e-8);
  CHECK(AdagradOptions{}.eps == 1e-8);
  CHECK(AdaDeltaOptions{}.rho == 0.9);
  CHECK(AdaDeltaOptions{}.eps == 1e-6);
  CHECK(AdamOptions{}.betas == std::array{0.9, 0.999});
  CHECK(AdamOptions{}.eps == 1e-8);
  CHECK_FALSE(AdamOptions{}.bias_correction);
  CHECK(AdamWOptions{}.betas == std::array{0.9, 0.999});
  CHECK(AdamWOptions{}.eps == 1e-8);
  CHECK(AdamWOptions{}.weight_decay == 0.01);
  CHECK_FALSE(AdamWOptions{}.bias_correction);
  CHECK(AdamaxOptions{}.betas == std::array{0.9, 0.999});
  CHECK(AdamaxOptions{}.eps == 1e-8);
  CHECK(LionOptions{}.betas == std::array{0.9, 0.99});
  CHECK(LionOptions{}.weight_decay == 0);
}
