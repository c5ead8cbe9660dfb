#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ringlet/group.hpp>
#include <span>

namespace ringlet {

struct AverageOptions {
  /// Bytes of gradients that are moved together; <= 0: each tensor by itself. MLX's name and default.
  std::int64_t all_reduce_size = 32 << 20;
  /// The dtype that crosses the network: f16 or bf16; unset: each tensor's own.
  std::optional<DType> communication_type{};
  /// This rank's share of the average, such as its number of samples: the result is sum(weight * gradient) / sum(weight).
  /// Unset on all ranks: the plain mean. Finite, >= 0, and > 0 on at least one rank; set on all ranks or on none.
  std::optional<double> weight{};
  Stream stream{};
};

/// Averages gradients over the group while they are still being made: a bucket starts as soon as it is full.
/// One thread at a time. The views' memory is borrowed from `add` until `finish` has returned.
class GradientAverager {
 public:
  GradientAverager(Group group, const AverageOptions& options = {});
  GradientAverager(GradientAverager&&) noexcept;
  GradientAverager& operator=(GradientAverager&&) noexcept;
  /// Waits for the buckets that have started.
  ~GradientAverager();

  /// Takes the next gradient, in the same order on every rank. f16, bf16, f32, f64 or complex64, else `InvalidArgument`.
  void add(TensorView gradient);
  /// Starts what is left, waits for all, writes the averages into the gradients. Throws the first error. Then ready for the next step.
  void finish();
  /// Collectives of this step so far, or of the last one between finish() and the next add().
  std::size_t collectives() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// MLX's `nn.average_gradients`: each gradient becomes its mean over the group, in place. A group of one changes nothing.
/// Dtypes may be mixed: tensors of one dtype share buckets.
void average_gradients(Group group, std::span<const TensorView> gradients, const AverageOptions& options = {});

}  // namespace ringlet
