#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ringlet/tree.hpp>
#include <span>
#include <string>

#include "model.hpp"
#include "settings.hpp"
#include "stopwatch.hpp"

namespace ringlet {
class Checkpoint;
class Group;
}  // namespace ringlet

namespace train_text {

/// Decides where a rank keeps parameters, gradients and optimizer state, and how a step's gradients are brought there. The modes of
/// training differ in this alone. On native ranks the members that communicate are collective and throw `ringlet::Error` if the group
/// fails.
class ParameterStore : public ModuleMemory<float> {
 public:
  /// Returns all parameters in one array, into which rank 0's are broadcast. Returns an empty span if the ranks share them already.
  virtual std::span<float> values() { return {}; }

  /// Called before a step's first backward pass. This rank takes `samples` samples of the `batch`; the group has `ranks` ranks.
  virtual void begin_gradients(int /*samples*/, int /*batch*/, int /*ranks*/) {}
  /// The factor for a backward pass that makes the group's average that of the whole batch.
  virtual double gradient_scale() const { return 1; }
  /// Called after each backward pass. `part_of_share` is the pass' fraction of this rank's samples, which is 1 unless they are computed in
  /// slices.
  virtual void end_slice(double /*part_of_share*/) {}
  /// Tells whether the other ranks need this rank's passes even if it has no samples.
  virtual bool passes_without_samples() const { return true; }

  /// Finishes averaging the gradients. It changes nothing that lasts.
  virtual void average() {}
  /// Updates the parameters. In an elastic group all ranks have agreed on it before, so it does not communicate.
  virtual void apply_gradients() = 0;

  /// Whether training goes on when a rank is lost.
  virtual bool survives_losses() const { return false; }
  /// Begins in a group: the first one, or another one between two acts. Returns what of the parameters or the optimizer's state is lost,
  /// the same text on all ranks, or an empty one. If something is, a checkpoint is to be loaded.
  virtual std::string set_group(const ringlet::Group& /*group*/) { return {}; }
  /// What this rank holds counts for nothing any more: the others have gone on without it.
  virtual void forget() {}
  /// How many steps are done in the state that set_group() has brought. Nothing if it brings none, and each rank has its own.
  virtual std::optional<std::uint64_t> steps_in_group() const { return std::nullopt; }

  /// The size of the parameters that this rank keeps between two steps.
  virtual std::size_t parameter_bytes() const = 0;
  virtual std::size_t optimizer_bytes() const = 0;
  /// The optimizer's state where every rank has all of it. Else it is empty.
  virtual ringlet::Tree whole_state() { return {}; }
  /// Sets how many steps the optimizer has taken.
  virtual void set_steps_done(std::uint64_t /*steps*/) {}
  /// Called after add_to() and the loading of a checkpoint, on all ranks that have files.
  virtual void loaded(std::uint64_t steps) { set_steps_done(steps); }
  /// Adds the parameters and the optimizer's state to a checkpoint, by names that are the same in every mode. The memory is borrowed. Only
  /// ranks that have files call this.
  virtual void add_to(ringlet::Checkpoint& /*checkpoint*/) {}
  /// Returns the hash of all parameters as this rank sees them. It is equal on all ranks, and in all modes that compute the same
  /// parameters.
  virtual std::uint64_t parameter_hash() = 0;
  /// The time that this rank has spent moving parameters and gradients and waiting for the others, without that in `average`.
  virtual double communication_seconds() const { return communication_.seconds(); }

 protected:
  explicit ParameterStore(const Settings& settings);

  std::optional<double> max_norm_;
  Stopwatch communication_;
};

}  // namespace train_text
