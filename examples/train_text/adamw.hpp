#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace train_text {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  /// Gradients are scaled down to this global norm; 0: never.
  double max_norm = 1.0;
};

/// Elements [first, first + count) of the parameters.
struct ParameterRange {
  std::size_t first = 0;
  std::size_t count = 0;
  bool decays = false;
};

/// AdamW over flat parameters. Data-parallel ranks never exchange parameters after the first broadcast: they stay equal because each rank
/// applies the same averaged gradients with the same arithmetic. So this file uses only operations that IEEE 754 rounds exactly
/// (+ - * / sqrt, in a fixed order), nothing from the mathematical library, and is compiled without contraction.
class AdamW {
 public:
  /// `ranges` cover the parameters without gaps.
  AdamW(std::vector<ParameterRange> ranges, const AdamWOptions& options = {});

  /// One update. Both spans have one element per parameter.
  void step(std::span<float> parameters, std::span<const float> gradients, double learning_rate);

 private:
  void update(const ParameterRange& range, std::span<float> parameters, std::span<const float> gradients, double learning_rate,
              float scale);

  AdamWOptions options_;
  std::vector<ParameterRange> ranges_;
  std::vector<float> first_moment_;
  std::vector<float> second_moment_;
  double beta1_power_ = 1;
  double beta2_power_ = 1;
};

/// The square root of the sum of squares.
double global_norm(std::span<const float> values);

/// Learning rate of a step counted from 0: a linear rise over the first twentieth, then a linear fall to a twentieth of the peak.
double learning_rate_at(int step, int steps, double peak);

}  // namespace train_text
