#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <ringlet/average_options.hpp>
#include <ringlet/checkpoint.hpp>
#include <ringlet/group.hpp>
#include <ringlet/status.hpp>
#include <ringlet/tensor.hpp>
#include <ringlet/tree.hpp>
#include <string>
#include <vector>

namespace ringlet {

class ElasticShards;
class ElasticTrainer;
class OuterTrainer;

/// What a trainer says when its ranks have become others.
struct MembershipChange {
  Group world;             ///< of all who go on
  std::vector<int> lost;   ///< ranks of the world before that are gone, ascending
  int joined = 0;          ///< how many ranks, the last ones of `world`, are new
  Status cause;            ///< of a loss: the first one, with the culprit's name
  std::uint64_t step = 0;  ///< how many steps are committed
  /// How long this rank stood still for it. After a loss: from when it noticed it until those who are left had agreed. For new ranks: while
  /// the world was changed and the state handed over.
  std::chrono::nanoseconds pause{};
};

/// That training went back to a checkpoint, since all holders of some rows of sharded state were lost.
struct Rollback {
  std::string lost;        ///< which rows, for instance "the rows 0 to 20 of 'layers.0.weight'"
  std::uint64_t from = 0;  ///< how many steps were committed
  std::uint64_t to = 0;    ///< how many are now: the checkpoint's
};

/// Options of ElasticTrainer. `average`, `checkpoint_every`, `keep` and whether `checkpoint` is set are the same on all ranks.
struct ElasticTrainerOptions {
  AverageOptions average{};  ///< how gradients are averaged; its weight stays unset, since the samples are the weights
  /// RINGLET_MIN_RANKS, which `ringlet launch --elastic MIN:MAX` sets, else 1: with fewer ranks an elastic group does not train. It keeps
  /// the state, saves it where `checkpoint` is set, and waits for others to join. Where ranks say different numbers, the highest counts.
  std::optional<int> min_ranks{};
  /// RINGLET_MIN_WAIT_MS, else 10 minutes: how long it waits for `min_ranks`, before run() throws `PeerLost`.
  std::optional<std::chrono::milliseconds> min_wait{};
  /// Whether a rank that the others went on without, because it stood still or its network did, joins them again and gets their state.
  bool rejoin = true;
  std::filesystem::path checkpoint{};  ///< the directory of save_checkpoint(); empty: none are saved
  std::uint64_t checkpoint_every = 0;  ///< steps; 0: only after the last one
  int keep = 2;                        ///< as SaveOptions::keep
  /// Runs after ranks were lost or have joined, on all others. It may not call collectives.
  std::function<void(const MembershipChange&)> on_change{};
  /// Runs in each world that a trainer enters after its first one, on all ranks alike, before those that have joined get the state. It may
  /// call collectives, by which these learn what they need before they can make a trainer, such as the sizes of a model: whoever has joined
  /// takes part before it makes one. Errors of the world are to pass, and it runs again in the next one.
  std::function<void(Group world)> on_world{};
  /// Runs on all ranks when training has gone back to a checkpoint. It may not call collectives.
  std::function<void(const Rollback&)> on_rollback{};
  /// Runs on a rank whose state has been filled from a checkpoint or by other ranks, before the next step: what follows from the
  /// state (an optimizer's set_step(), a random generator) is to be set anew. It gets the state's values and the number of committed steps.
  std::function<void(const Checkpoint& state, std::uint64_t step)> on_state{};
};

/// With how few ranks an elastic group trains. With fewer it takes no step, and waits for others to join.
struct MinRanks {
  int count = 1;                     ///< native ranks; browsers do not count
  std::chrono::milliseconds wait{};  ///< for how long they wait at most
};
/// What holds for an ElasticTrainer with these options, for a loop of one's own: the options come first, then RINGLET_MIN_RANKS and
/// RINGLET_MIN_WAIT_MS. Throws `InvalidArgument` that names the one that is wrong.
MinRanks read_min_ranks(const ElasticTrainerOptions& options = {});

/// How far to train. The same on all ranks.
struct TrainingPlan {
  std::uint64_t steps = 0;  ///< the number of the last step to commit, counted from 1
  std::uint64_t batch = 0;  ///< samples of a step, of all ranks together; at least 1
};

/// One attempt at a training step on this rank. It is valid while the step function runs, on its thread only.
class Step {
 public:
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  /// The step's number: how many were committed before it. The same on all ranks.
  std::uint64_t number() const noexcept { return number_; }
  /// This rank's part of the step's batch: `count` samples from `first` on, of the numbers from 0 to TrainingPlan::batch. The parts of all
  /// ranks are the whole batch, however many ranks there are.
  ///@{
  std::uint64_t first() const noexcept { return first_; }
  std::uint64_t count() const noexcept { return count_; }
  ///@}
  /// The group of all ranks of this attempt, for the step's own collectives. After an attempt that failed there is another one.
  Group& world() const noexcept { return world_; }

  /// Adds a gradient, averaged over this rank's own samples; all ranks add them in the same order. A bucket starts as soon as it is full.
  /// A rank whose count() is 0 adds tensors with any contents. The memory is borrowed until average() has returned. Throws as
  /// GradientAverager::add does.
  void add(TensorView gradient);
  /// Waits until every added gradient holds its average over the samples of the whole batch. Throws the first error.
  void average();
  /// Adds all gradients and averages them. Names, dtypes and shapes are compared between the ranks at a tree's first use.
  void average(const Tree& gradients);
  /// Runs `apply`, which changes the state, on all ranks or on none; the last call of a step. It costs one small collective. Where a rank
  /// was lost it throws `PeerLost`, which the step function is to let pass: the step is then done again. If `apply` throws, this rank
  /// leaves. Throws `InvalidArgument` after add() without average(), and if the step is committed already.
  void commit(const std::function<void()>& apply);

 private:
  friend class ElasticTrainer;
  Step(ElasticTrainer& trainer, Group& world, std::uint64_t number, std::uint64_t first, std::uint64_t count)
      : trainer_(trainer), world_(world), number_(number), first_(first), count_(count) {}

  ElasticTrainer& trainer_;
  Group& world_;
  const std::uint64_t number_, first_, count_;
  bool is_averaged_ = true;
  bool is_committed_ = false;
};

/// A training loop of an elastic group, whose ranks come and go. A step is committed on all ranks or on none; one that is not is
/// done again by those who are left, with the same batch, divided anew. So the result of each step is that of an undisturbed run with the
/// same ranks, and no sample is lost or used twice. In a group that is not elastic the first loss ends run(), as that of any other call.
///
/// A process that joins the group (InitOptions::join) makes a trainer like the others; run() then begins with the state and at the step of
/// these, who train on until it has met them all.
///
/// Only one thread may use it at a time.
class ElasticTrainer {
 public:
  /// `state` has all that a step changes: parameters and optimizers' state. Its tensors, which are borrowed until the trainer is destroyed,
  /// are whole on every rank. Throws `InvalidArgument` for a tensor that is sharded, for the names kAverageResiduals and kShardResiduals,
  /// and for options that do not fit.
  ElasticTrainer(Group world, Checkpoint state, ElasticTrainerOptions options = {});
  /// The same with sharded state beside that, which is borrowed, too: an ElasticFsdp or an ElasticFullyShard. It has its own parameters, so
  /// `state` is without them; the trainer saves and loads both. A step averages gradients by the shards' own calls, and calls their
  /// update() in Step::commit(). A loss costs no step as long as each row has a holder left. Else training goes back to the newest
  /// checkpoint, which `on_rollback` tells; run() throws `PeerLost` if there is none.
  ElasticTrainer(Group world, Checkpoint state, ElasticShards& shards, ElasticTrainerOptions options = {});
  ElasticTrainer(const ElasticTrainer&) = delete;
  ElasticTrainer& operator=(const ElasticTrainer&) = delete;
  ~ElasticTrainer();

  /// Trains until `plan.steps` steps are committed. `step` may be called several times for one step; it ends with Step::commit(), before
  /// which it changes nothing that lasts.
  ///
  /// First the newest checkpoint is loaded where there is one, and ranks whose state then differs get that of the lowest rank of those that
  /// have done the most steps. Throws what `step` throws, what save_checkpoint() and load_checkpoint() throw, `InvalidArgument` if `step`
  /// returns without a commit, `MismatchError` if the ranks' plans differ, or their tensors in name, dtype or shape, and `PeerLost` if the
  /// others have gone on without this rank and it cannot join them again, or fewer than `min_ranks` have been there for `min_wait`. A rank
  /// that differs and has just joined a training that had begun leaves, and the others go on without it.
  void run(const TrainingPlan& plan, const std::function<void(Step&)>& step);

  /// The group of all ranks that are left.
  const Group& world() const noexcept;
  /// How many steps are committed.
  std::uint64_t step() const noexcept;
  /// The state, whose values may be set within `apply`, alike on all ranks: they are saved and handed over with the tensors.
  Checkpoint& state() noexcept;

 private:
  friend class OuterTrainer;
  friend class Step;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringlet
