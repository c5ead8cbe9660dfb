#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "batches.hpp"
#include "parameter_store.hpp"

namespace train_text {

struct ModelShape {
  int layers = 2;
  int width = 96;
  int heads = 4;
  int context = 64;
};

/// Throws `InputError`, saying which number does not fit and what would.
void check_shape(const ModelShape& shape);

/// A language model over bytes: embedding, pre-norm transformer blocks (causal attention, then an MLP with GELU), layer norm, output
/// projection. T is float; the tests also use double. One thread at a time.
template <class T>
class Transformer {
 public:
  /// Called with a part of `gradients()` that is complete and will not change before the next forward pass.
  using GradientReady = std::function<void(std::span<T>)>;

  /// Parameters are drawn from `seed`. Throws `InputError` as `check_shape` does.
  Transformer(const ModelShape& shape, std::uint64_t seed);
  ~Transformer();
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  std::span<T> parameters();
  std::span<T> gradients();
  /// The parameters' tensors, in order and without gaps.
  const std::vector<ParameterRange>& parameter_ranges() const;

  /// Mean cross-entropy over the batch, in nats per byte. The batch has at least one sequence, none longer than the context.
  double forward(const Batch& batch);
  /// Fills `gradients()` with the gradient of the last forward pass' loss. Every part of it is reported once, the output end first, always
  /// in the same order, as soon as it is ready: so that it can travel while the rest is computed. Destroys what forward left.
  void backward(
      const Batch& batch, const GradientReady& ready = [](std::span<T>) {});

  /// The unnormalised log-probabilities of the byte after `text`, whose last `context` bytes count. `text` is not empty.
  std::vector<T> next_byte_logits(std::span<const std::uint8_t> text);

 private:
  struct Layers;
  ModelShape shape_;
  std::unique_ptr<Layers> layers_;
};

}  // namespace train_text
