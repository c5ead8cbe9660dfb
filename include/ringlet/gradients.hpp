#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ringlet/average_options.hpp>
#include <ringlet/group.hpp>
#include <ringlet/tree.hpp>
#include <span>
#include <string_view>
#include <vector>

namespace ringlet {

/// Averages gradients over the group while they are still being made: a bucket starts as soon as it is full.
/// One thread at a time. The views' memory is borrowed from `add` until `finish` has returned.
class GradientAverager {
 public:
  /// Throws `InvalidArgument` for a communication_type or weight that does not fit.
  GradientAverager(Group group, const AverageOptions& options = {});
  /// What is moved from can only be assigned to, or go.
  ///@{
  GradientAverager(GradientAverager&&) noexcept;
  GradientAverager& operator=(GradientAverager&&) noexcept;
  ///@}
  /// Waits for the buckets that have started.
  ~GradientAverager();

  /// This rank's share of the averages from the next step on, as AverageOptions::weight. Throws `InvalidArgument` within a step.
  void set_weight(std::optional<double> weight);
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
/// The same for a tree. At the first call with it, names, order, dtypes and shapes are compared between the ranks: where they differ, every
/// rank throws a `MismatchError` that names the first difference, and the group lives on.
void average_gradients(Group group, const Tree& gradients, const AverageOptions& options = {});

/// How GradientBucketer averages.
struct BucketerOptions {
  /// As of GradientAverager; the first bucket is 1 MiB, so that the network starts early.
  AverageOptions average{.first_bucket_size = 1 << 20};
  /// Whether finish() may find gradients that were not ready. It then costs one small collective a step to find those that no rank had.
  bool allow_missing = true;
};

/// Averages gradients while the backward pass still makes them, whatever order it makes them in: they are registered once, and reported
/// one by one. Buckets are filled in the reverse of the tree's order, as a backward pass goes, and from the second step on in the order
/// that rank 0 observed in the first; each starts as soon as it is full and those before it have started. One thread at a time.
class GradientBucketer {
 public:
  /// `gradients` views memory that is used in every step; it is borrowed until the bucketer goes. Collective: throws as average_gradients
  /// does where the ranks' trees differ.
  GradientBucketer(Group group, const Tree& gradients, const BucketerOptions& options = {});
  /// What is moved from can only be assigned to, or go.
  ///@{
  GradientBucketer(GradientBucketer&&) noexcept;
  GradientBucketer& operator=(GradientBucketer&&) noexcept;
  ///@}
  /// Waits for the buckets that have started.
  ~GradientBucketer();

  /// This rank's share of the averages from the next step on, as AverageOptions::weight. Throws `InvalidArgument` within a step.
  void set_weight(std::optional<double> weight);
  /// The gradient is complete and is not touched until finish() has returned. Any order. Throws `InvalidArgument` for a name that is not
  /// in the tree, and for the second time in a step.
  ///@{
  void ready(std::string_view name);
  void ready(std::size_t index);
  ///@}
  /// Ends the step: what this rank has not reported counts as zeros. Waits for all averages; throws the first error. Where
  /// `allow_missing` is off, throws `InvalidArgument` naming what is missing, before anything moves.
  void finish();
  /// After finish(): the gradients that at least one rank reported in the step, with their averages; the others' memory holds zeros.
  const Tree& averaged() const noexcept;
  /// As GradientAverager::collectives: of the averages, without those that agree on order and missing gradients.
  std::size_t collectives() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringlet
