#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace ringlet::test {

/// A data-parallel training of least squares. Each rank has samples of its own, and what all ranks know after a step depends only on the
/// number of ranks and steps.
class SmallTraining {
 public:
  SmallTraining(int rank, int size) : rank_(rank), size_(size), weights_(kWeights), values_(kWeights + 1) {}

  /// Returns this rank's gradient, followed by whether it wants to end, to be summed over all ranks in place.
  std::vector<float>& contribute(bool end) {
    values_.assign(values_.size(), 0.0f);
    std::uint32_t state = 0x9e3779b9u * (static_cast<std::uint32_t>(rank_) * 1'000'003u + static_cast<std::uint32_t>(steps_) + 1) | 1;
    std::vector<float> sample(kWeights);
    float error = 0, square = 0;
    for (std::size_t i = 0; i < kWeights; ++i) {
      state ^= state << 13;
      state ^= state >> 17;
      state ^= state << 5;
      sample[i] = static_cast<float>(static_cast<std::int32_t>(state)) / 2147483648.0f;
      error += sample[i] * (weights_[i] - target(i));
      square += sample[i] * sample[i];
    }
    for (std::size_t i = 0; i < kWeights; ++i) values_[i] = sample[i] * (error / square);
    values_[kWeights] = end ? 1.0f : 0.0f;
    return values_;
  }

  /// Takes the step after the sum. Returns false where it was the last one.
  bool step() {
    for (std::size_t i = 0; i < kWeights; ++i) weights_[i] -= values_[i] / static_cast<float>(size_);
    ++steps_;
    return values_[kWeights] == 0.0f;
  }

  int steps() const { return steps_; }
  /// Returns how far the weights are from what they should be, which falls.
  double distance() const {
    double sum = 0;
    for (std::size_t i = 0; i < kWeights; ++i) sum += (weights_[i] - target(i)) * (weights_[i] - target(i));
    return sum;
  }
  /// Returns a text such as "1234 steps, hash 89abcdef", with a hash of the weights' bits.
  std::string result() const {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const float weight : weights_) {
      std::uint32_t bits;
      std::memcpy(&bits, &weight, sizeof bits);
      hash = (hash ^ bits) * 0x100000001b3;
    }
    return std::to_string(steps_) + " steps, hash " + std::to_string(hash);
  }

 private:
  static constexpr std::size_t kWeights = 30'000;
  static float target(std::size_t index) { return static_cast<float>(index % 17) - 8.0f; }

  const int rank_, size_;
  std::vector<float> weights_;
  std::vector<float> values_;
  int steps_ = 0;
};

}  // namespace ringlet::test
