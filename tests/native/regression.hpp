#pragma once

#include <algorithm>
#include <cmath>
#include <ringlet/ringlet.hpp>
#include <string>
#include <vector>

namespace ringlet::test {

/// A least-squares fit whose samples are spread over ranks: every parameter is pulled towards a target that differs from rank to rank, with
/// a force that is not linear, so that the order of updates matters.
class Regression {
 public:
  explicit Regression(const std::vector<Shape>& shapes) {
    values_.reserve(shapes.size());
    gradients_.reserve(shapes.size());
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      values_.emplace_back(shapes[t].count());
      gradients_.emplace_back(shapes[t].count());
      for (std::size_t i = 0; i < values_[t].size(); ++i) values_[t][i] = std::sin(static_cast<float>(31 * t + i));
      const std::string name = "layer" + std::to_string(t) + (shapes[t].axes() < 2 ? ".bias" : ".weight");
      parameters_.add(name, {values_[t].data(), DType::f32, shapes[t]});
      gradient_tree_.add(name, {gradients_[t].data(), DType::f32, shapes[t]});
    }
  }

  void compute_gradients(int rank, int step) {
    for (std::size_t t = 0; t < values_.size(); ++t)
      for (std::size_t i = 0; i < values_[t].size(); ++i) {
        const float target =
            std::cos(static_cast<float>(7 * t + 3 * i) + 0.3f * static_cast<float>(rank) + 0.01f * static_cast<float>(step));
        gradients_[t][i] = std::tanh(values_[t][i] - target) * (1.f + 0.5f * static_cast<float>((i + static_cast<std::size_t>(rank)) % 3));
      }
  }

  const Tree& parameters() const { return parameters_; }
  const Tree& gradients() const { return gradient_tree_; }

  /// Returns the largest difference of a parameter.
  float distance(const Regression& other) const {
    float largest = 0;
    for (std::size_t t = 0; t < values_.size(); ++t)
      for (std::size_t i = 0; i < values_[t].size(); ++i) largest = std::max(largest, std::abs(values_[t][i] - other.values_[t][i]));
    return largest;
  }
  bool same_bits(const Regression& other) const { return values_ == other.values_; }
  std::vector<float> flat() const {
    std::vector<float> all;
    for (const auto& values : values_) all.insert(all.end(), values.begin(), values.end());
    return all;
  }

 private:
  std::vector<std::vector<float>> values_, gradients_;
  Tree parameters_, gradient_tree_;
};

inline const std::vector<Shape> kEvenShapes{Shape{16, 8}, Shape{8}, Shape{24, 3}};
inline const std::vector<Shape> kUnevenShapes{Shape{13, 5}, Shape{3}, Shape{}, Shape{1, 7}, Shape{2, 3, 2}, Shape{0, 4}, Shape{29}};

}  // namespace ringlet::test
