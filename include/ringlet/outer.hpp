#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ringlet/elastic.hpp>
#include <ringlet/optimizers.hpp>
#include <ringlet/tree.hpp>
#include <ringlet/wire.hpp>

namespace ringlet {

/// Options of OuterTrainer, the same on all ranks. The defaults of the outer optimizer are DiLoCo's.
struct OuterTrainerOptions {
  /// Steps that a rank takes alone between two averages of the same parameter (H); at least 1.
  int inner_steps = 50;
  /// In how many parts the parameters are averaged, one after the other, every `inner_steps / fragments` steps. So a rank sends that many
  /// times less at once. It divides `inner_steps`, and the tree has as many leaves.
  int fragments = 1;
  /// Inner steps that a rank goes on with while a fragment is averaged; below `inner_steps / fragments`. 0: it waits for the average.
  int overlap = 0;
  /// With `overlap`, what a rank keeps of the parameters that it has by then (Streaming DiLoCo's alpha, in [0, 1]); the rest is the others'
  /// and its own average. It is 0 without overlap.
  double mixing = 0.5;
  /// Whether slower ranks take fewer inner steps, so that the others do not wait for them, by how long those before took. The result then
  /// depends on the machines' clocks. It is the same on all ranks still.
  bool by_speed = false;
  /// Seconds by which `by_speed` measures inner steps, read before and after each on the thread of run(): of a simulated training, say, or
  /// of the processor's time. Unset: those that pass.
  std::function<double()> clock{};
  LearningRate learning_rate = 0.7;  ///< of the outer optimizer; a schedule counts the averages
  double momentum = 0.9;             ///< of the outer optimizer, >= 0
  bool nesterov = true;              ///< whether that momentum is Nesterov's
  /// How the differences cross the network; unset: in the parameters' dtype. With feedback a rank keeps two f32 per element.
  std::optional<Wire> wire{};
  /// Of the loop, whose steps are the averages: so `checkpoint_every` counts these, and on_state gets their number. Its
  /// `average.communication_type` stays unset.
  ElasticTrainerOptions elastic{};
};

/// One step that a rank takes alone.
struct InnerStep {
  /// Counts the inner steps from 0, alike on all ranks; a slower rank leaves some numbers out.
  std::uint64_t number = 0;
  int rank = 0;   ///< of this rank among those that train now
  int ranks = 1;  ///< how many train now
};

/// Training with few averages, for slow networks: DiLoCo (Douillard et al., arXiv 2311.08105) and, with fragments and overlap, Streaming
/// DiLoCo (arXiv 2501.18512). Each rank takes `inner_steps` steps alone, with an optimizer and samples of its own. Then the differences
/// between the shared parameters and each rank's are averaged, weighted by the samples that each has trained with, and an outer SGD with
/// Nesterov's momentum applies the average to the shared parameters as if it were a gradient. All ranks go on from there. So a step sends
/// 1 / `inner_steps` of what averaging gradients sends. It costs loss at equal samples (docs/library.md has figures).
///
/// All ranks have the same bits of the shared parameters, with each wire. In an elastic group ranks come and go as ElasticTrainer says: the
/// shared parameters and the outer momentum are its state, which joiners get. What a rank has learnt since its last average is lost with
/// it, and so is its inner optimizer's state. The others keep their inner steps, and take the average again without it.
///
/// Only one thread may use it at a time.
class OuterTrainer {
 public:
  /// `parameters`, of f32 or f64, are borrowed until the trainer is destroyed. Their values are those that training begins with; if the
  /// ranks' values differ, rank 0's are taken. Throws `InvalidArgument` for another dtype and for options that do not fit.
  OuterTrainer(Group world, const Tree& parameters, OuterTrainerOptions options = {});
  OuterTrainer(const OuterTrainer&) = delete;
  OuterTrainer& operator=(const OuterTrainer&) = delete;
  ~OuterTrainer();

  /// Trains until `steps` inner steps, a multiple of `inner_steps / fragments`, are done. `inner` takes one: it changes `parameters` and
  /// returns how many samples it has used, >= 0 and finite, which is this rank's weight. It calls no collective.
  ///
  /// The last average of a run has all fragments, so that afterwards `parameters` are the shared ones, with the same bits on all ranks.
  /// Throws what `inner` throws, what ElasticTrainer::run() throws, and `InvalidArgument` where no rank has used a sample.
  void run(std::uint64_t steps, const std::function<double(const InnerStep&)>& inner);

  /// The shared parameters as of the last average, in memory of their own; the same bits on all ranks.
  const Tree& shared_parameters() const noexcept;
  /// What is saved and handed over, with names of its own that begin with "outer_". Values may be set beside them before run(), to compare
  /// them in on_state.
  Checkpoint& state() noexcept;
  /// The group of all ranks that are left.
  const Group& world() const noexcept;
  /// How many averages are done.
  std::uint64_t averages() const noexcept;
  /// How many inner steps are done, as `InnerStep::number` counts them.
  std::uint64_t steps() const noexcept;
  /// The leaves of a fragment, which is below `fragments`: as many bytes as in the others, as far as whole leaves allow.
  Tree fragment(int index) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringlet
