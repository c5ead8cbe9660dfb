#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ringlet/ringlet.hpp>

#include "model.hpp"
#include "options.hpp"
#include "stopwatch.hpp"

namespace train_text {

/// Where the ranks keep parameters, gradients and optimizer state, and how a step's gradients get there: what the modes of training differ
/// in. All members are collective: every rank calls them in the same order. They throw `ringlet::Error` where the group fails.
class Placement : public ModuleMemory<float> {
 public:
  /// What a rank's backward pass is scaled by, so that the group's average is that of the whole batch.
  virtual double gradient_scale() const { return 1; }
  /// After the backward pass: brings the ranks' gradients together, clips their norm and updates the parameters.
  virtual void apply_gradients() = 0;

  /// What this rank keeps between two steps.
  virtual std::size_t parameter_bytes() const = 0;
  std::size_t optimizer_bytes() const { return optimizer_.state_bytes(); }
  ringlet::Optimizer& optimizer() { return optimizer_; }
  /// Adds the parameters and the optimizer's state, to be saved or loaded, by names that are the same in every mode. They are borrowed.
  virtual void add_to(ringlet::Checkpoint& checkpoint) = 0;
  /// Of all parameters as this rank sees them: equal on all ranks if all went well, and in all modes that have the same parameters.
  virtual std::uint64_t parameter_hash() = 0;
  /// Time that this rank has spent on moving parameters and gradients and on waiting for the others.
  virtual double communication_seconds() const { return communication_.seconds(); }

 protected:
  explicit Placement(const Options& options);

  ringlet::MultiOptimizer optimizer_;
  std::optional<double> max_norm_;
  Stopwatch communication_;
};

/// Gives all ranks the initial values of rank 0. `model` must outlive the placement; `options` are read during the call only.
std::unique_ptr<Placement> make_placement(const Options& options, Transformer<float>& model, ringlet::Group group);

}  // namespace train_text
