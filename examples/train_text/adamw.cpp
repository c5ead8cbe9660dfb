#include "adamw.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace train_text {

AdamW::AdamW(std::vector<ParameterRange> ranges, const AdamWOptions& options) : options_(options), ranges_(std::move(ranges)) {
  std::size_t count = 0;
  for (const ParameterRange& range : ranges_) count += range.count;
  first_moment_.resize(count);
  second_moment_.resize(count);
}

void AdamW::step(std::span<float> parameters, std::span<const float> gradients, double learning_rate) {
  beta1_power_ *= options_.beta1;
  beta2_power_ *= options_.beta2;
  const double norm = options_.max_norm > 0 ? global_norm(gradients) : 0.0;
  const float scale = norm > options_.max_norm ? static_cast<float>(options_.max_norm / norm) : 1.0F;
  for (const ParameterRange& range : ranges_) update(range, parameters, gradients, learning_rate, scale);
}

void AdamW::update(const ParameterRange& range, std::span<float> parameters, std::span<const float> gradients, double learning_rate,
                   float scale) {
  const auto beta1 = static_cast<float>(options_.beta1);
  const auto beta2 = static_cast<float>(options_.beta2);
  const auto epsilon = static_cast<float>(options_.epsilon);
  const auto rate = static_cast<float>(learning_rate / (1 - beta1_power_));
  const auto correction2 = static_cast<float>(1 / (1 - beta2_power_));
  const auto keep = static_cast<float>(1 - (range.decays ? learning_rate * options_.weight_decay : 0.0));
  for (std::size_t i = range.first; i < range.first + range.count; ++i) {
    const float gradient = gradients[i] * scale;
    first_moment_[i] = beta1 * first_moment_[i] + (1 - beta1) * gradient;
    second_moment_[i] = beta2 * second_moment_[i] + (1 - beta2) * gradient * gradient;
    parameters[i] = keep * parameters[i] - rate * first_moment_[i] / (std::sqrt(second_moment_[i] * correction2) + epsilon);
  }
}

double global_norm(std::span<const float> values) {
  // Several sums side by side: one long chain of additions would wait for each.
  std::array<double, 8> sums{};
  for (std::size_t i = 0; i < values.size(); ++i) sums[i % sums.size()] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

double learning_rate_at(int step, int steps, double peak) {
  constexpr double kFloor = 0.05;
  const int rise = std::max(steps / 20, 1);
  if (step < rise) return peak * (step + 1) / rise;
  const double left = static_cast<double>(steps - step) / static_cast<double>(std::max(steps - rise, 1));
  return peak * std::max(left, kFloor);
}

}  // namespace train_text
