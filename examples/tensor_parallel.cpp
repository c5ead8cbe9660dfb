// A two-layer perceptron whose hidden layer is spread over the ranks. Each rank holds a part of both matrices, and one all-reduce in each
// direction makes the results whole. The network learns the absolute value of a number.
//
//   ringlet launch -n 2 -- tensor_parallel
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <ringlet/ringlet.hpp>
#include <vector>

namespace {

constexpr std::int64_t kHidden = 64;
constexpr int kBatch = 32;
constexpr int kSteps = 400;

/// Returns the same numbers on every rank. Each rank then keeps its part of them.
std::vector<float> random_weights(std::size_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> weights(count);
  for (float& weight : weights) weight = static_cast<float>(static_cast<double>(generator()) / 4294967296.0 * 2 - 1);
  return weights;
}

class Perceptron {
 public:
  explicit Perceptron(const ringlet::Group& group)
      : weight1_(shard(group, random_weights(kHidden, 1))),
        bias1_(shard(group, random_weights(kHidden, 2))),
        weight2_(shard(group, random_weights(kHidden, 3))),
        leave_(group),
        hidden_(kBatch * weight1_.size()) {}

  /// Returns the mean squared error of the batch and then takes one step of gradient descent.
  float train(const std::vector<float>& x, float rate) {
    const std::size_t width = weight1_.size();
    std::vector<float> y(x.size());
    for (std::size_t n = 0; n < x.size(); ++n)
      for (std::size_t h = 0; h < width; ++h) {
        hidden_[n * width + h] = std::max(0.f, x[n] * weight1_[h] + bias1_[h]);
        y[n] += hidden_[n * width + h] * weight2_[h];
      }
    leave_.forward(y);  // before this each rank has only its part of the sum
    float loss = 0;
    for (std::size_t n = 0; n < x.size(); ++n) {
      y[n] = y[n] + bias2_ - std::abs(x[n]);
      loss += y[n] * y[n] / kBatch;
      y[n] *= 2.f / kBatch;
    }
    leave_.backward(y);
    for (std::size_t n = 0; n < x.size(); ++n) {
      bias2_ -= rate * y[n];
      for (std::size_t h = 0; h < width; ++h) {
        const float active = hidden_[n * width + h];
        const float back = active > 0 ? y[n] * weight2_[h] : 0.f;
        weight2_[h] -= rate * y[n] * active;
        weight1_[h] -= rate * back * x[n];
        bias1_[h] -= rate * back;
      }
    }
    return loss;
  }

 private:
  static std::vector<float> shard(const ringlet::Group& group, const std::vector<float>& full) {
    const ringlet::Tensor own = ringlet::shard_axis(group, full, 0);
    return {own.values<float>().begin(), own.values<float>().end()};
  }

  std::vector<float> weight1_, bias1_, weight2_;
  float bias2_ = 0;
  ringlet::ShardedToAll leave_;
  std::vector<float> hidden_;
};

}  // namespace

int main() {
  try {
    ringlet::Group world = ringlet::init();
    Perceptron model(world);
    std::mt19937 samples(7);  // every rank sees the same batch
    float loss = 0, first = 0;
    for (int step = 0; step < kSteps; ++step) {
      std::vector<float> x(kBatch);
      for (float& value : x) value = static_cast<float>(static_cast<double>(samples()) / 4294967296.0 * 2 - 1);
      loss = model.train(x, 0.01f);
      if (step == 0) first = loss;
    }
    if (world.rank() == 0) std::printf("%d ranks, loss %.4f -> %.6f\n", world.size(), first, loss);
    return loss < first ? 0 : 1;
  } catch (const ringlet::Error& error) {
    std::fprintf(stderr, "tensor_parallel: %s\n", error.what());
    return 1;
  }
}
