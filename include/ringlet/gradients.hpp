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

class Checkpoint;

/// The name of an average's residuals in a checkpoint. An ElasticTrainer adds its own as that.
inline constexpr std::string_view kAverageResiduals = "average_residuals";

/// Averages gradients over the group while they are still being computed: a bucket starts as soon as it is full. Only one thread may use it
/// at a time. The views' memory is borrowed from `add` until `finish` has returned.
class GradientAverager {
 public:
  /// Throws `InvalidArgument` for an invalid communication_type or weight.
  GradientAverager(Group group, const AverageOptions& options = {});
  /// An object that was moved from can only be assigned to or destroyed.
  ///@{
  GradientAverager(GradientAverager&&) noexcept;
  GradientAverager& operator=(GradientAverager&&) noexcept;
  ///@}
  /// Waits for the buckets that have started.
  ~GradientAverager();

  /// Sets this rank's share of the averages from the next step on, as AverageOptions::weight does. Throws `InvalidArgument` within a step.
  void set_weight(std::optional<double> weight);
  /// Adds the next gradient; every rank adds them in the same order. Its dtype is f16, bf16, f32, f64 or complex64, else it throws
  /// `InvalidArgument`.
  void add(TensorView gradient);
  /// Starts the remaining buckets, waits for all and writes the averages into the gradients. Throws the first error. Afterwards the next
  /// step can begin.
  void finish();
  /// The number of collectives of this step so far, or of the last one between finish() and the next add().
  std::size_t collectives() const noexcept;
  /// Adds the residuals of error feedback, if there is such, to a checkpoint that is saved or loaded between two steps, while this object
  /// lives. Gradients are known by their order. Each rank has its own (Checkpoint::add_addends).
  void add_to(Checkpoint& checkpoint, std::string_view name = kAverageResiduals);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// MLX's `nn.average_gradients`: each gradient becomes its mean over the group, in place. A group of one changes nothing. Dtypes may be
/// mixed: tensors of one dtype share buckets.
void average_gradients(Group group, std::span<const TensorView> gradients, const AverageOptions& options = {});
/// The same for a tree. At the first call with a tree, its names, order, dtypes and shapes are compared between the ranks. If they differ,
/// every rank throws a `MismatchError` that names the first difference, and the group stays usable.
void average_gradients(Group group, const Tree& gradients, const AverageOptions& options = {});

/// Options of GradientBucketer.
struct BucketerOptions {
  /// As for GradientAverager, but the first bucket is 1 MiB, so that the network starts early.
  AverageOptions average{.first_bucket_size = 1 << 20};
  /// Whether gradients may be missing at finish(). If so, each step has one small additional collective, which finds the gradients that no
  /// rank had.
  bool allow_missing = true;
};

/// Averages gradients while the backward pass computes them, in any order: they are registered once and reported one by one. In the first
/// step buckets are filled in the reverse of the tree's order, as a backward pass goes; from the second step on in the order that rank 0
/// observed in the first. Each bucket starts as soon as it is full and those before it have started. Only one thread may use it at a time.
class GradientBucketer {
 public:
  /// `gradients` views memory that is used in every step and is borrowed until the bucketer is destroyed. Collective. Throws as
  /// average_gradients does if the ranks' trees differ.
  GradientBucketer(Group group, const Tree& gradients, const BucketerOptions& options = {});
  /// An object that was moved from can only be assigned to or destroyed.
  ///@{
  GradientBucketer(GradientBucketer&&) noexcept;
  GradientBucketer& operator=(GradientBucketer&&) noexcept;
  ///@}
  /// Waits for the buckets that have started.
  ~GradientBucketer();

  /// Sets this rank's share of the averages from the next step on, as AverageOptions::weight does. Throws `InvalidArgument` within a step.
  void set_weight(std::optional<double> weight);
  /// Reports that a gradient is complete; it must not be touched until finish() has returned. The order is free. Throws `InvalidArgument`
  /// for a name that is not in the tree and for a gradient that was already reported in this step.
  ///@{
  void ready(std::string_view name);
  void ready(std::size_t index);
  ///@}
  /// Ends the step: waits for all averages and throws the first error. Gradients that this rank has not reported count as zeros; if
  /// `allow_missing` is off, it throws an `InvalidArgument` that names them instead, before anything moves.
  void finish();
  /// After finish(): the gradients that at least one rank reported in the step, with their averages; the others' memory holds zeros.
  const Tree& averaged() const noexcept;
  /// The number of collectives, as GradientAverager::collectives counts them: those of the averages, without those that agree on the order
  /// and on missing gradients.
  std::size_t collectives() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringlet
