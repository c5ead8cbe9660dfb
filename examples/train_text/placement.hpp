#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ringlet/optimizers.hpp>
#include <span>

#include "model.hpp"
#include "settings.hpp"
#include "stopwatch.hpp"

namespace ringlet {
class Checkpoint;
}

namespace train_text {

/// Where a rank keeps parameters, gradients and optimizer state, and how a step's gradients get there: what the modes of training differ
/// in. On native ranks the members that move something are collective, and throw `ringlet::Error` where the group fails.
class Placement : public ModuleMemory<float> {
 public:
  /// Where this rank has all parameters: in one array, which rank 0's are broadcast into. Else empty, and they are shared already.
  virtual std::span<float> values() { return {}; }

  /// Before a step's first backward pass: this rank takes `samples` of the `batch`, and there are so many ranks.
  virtual void begin_gradients(int /*samples*/, int /*batch*/, int /*ranks*/) {}
  /// What a backward pass is scaled by, so that the group's average is that of the whole batch.
  virtual double gradient_scale() const { return 1; }
  /// A backward pass has ended whose samples are this part of the rank's share: all of it, unless it is computed in slices.
  virtual void end_slice(double /*part_of_share*/) {}
  /// Whether the others need this rank's passes even where it has no samples.
  virtual bool passes_without_samples() const { return true; }

  /// Ends what the backward pass began to average, where it is not `apply_gradients` that brings the gradients together.
  virtual void average() {}
  /// Clips the gradients' norm and updates the parameters.
  virtual void apply_gradients() = 0;

  /// What this rank keeps between two steps.
  virtual std::size_t parameter_bytes() const = 0;
  std::size_t optimizer_bytes() const { return optimizer_.state_bytes(); }
  ringlet::Optimizer& optimizer() { return optimizer_; }
  /// Adds the parameters and the optimizer's state, to be saved or loaded, by names that are the same in every mode. They are borrowed.
  /// Only for ranks that have files.
  virtual void add_to(ringlet::Checkpoint& /*checkpoint*/) {}
  /// Of all parameters as this rank sees them: equal on all ranks if all went well, and in all modes that have the same parameters.
  virtual std::uint64_t parameter_hash() = 0;
  /// Time that this rank has spent on moving parameters and gradients and on waiting for the others, but for that in `average`.
  virtual double communication_seconds() const { return communication_.seconds(); }

 protected:
  explicit Placement(const Settings& settings);

  ringlet::MultiOptimizer optimizer_;
  std::optional<double> max_norm_;
  Stopwatch communication_;
};

}  // namespace train_text
