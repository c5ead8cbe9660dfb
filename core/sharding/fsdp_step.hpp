#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ringlet/sharding.hpp>
#include <ringlet/tree.hpp>
#include <vector>

#include "core/engine/group_engine.hpp"
#include "core/engine/procedure.hpp"
#include "core/gradients/tree_agreement.hpp"
#include "core/sharding/clip.hpp"
#include "core/sharding/shard_moves.hpp"

namespace ringlet {

/// How FsdpStep shards and moves; as ringlet/fsdp.hpp says.
struct FsdpSettings {
  std::int64_t communication_size = 32 << 20;
  std::optional<double> max_norm{};
  std::optional<DType> reduce_dtype{};
  std::vector<double> shard_weights{};
};

/// FSDP's step over full parameters, again and again: gradients are reduce-scattered and averaged, `apply` sees this rank's rows of every
/// tensor, and the updated rows are gathered. Buffers are kept from step to step. Group 0 shards; group 1, if there is one, are the ranks
/// that hold the same shard.
class FsdpStep final : public Procedure {
 public:
  /// Takes a step on shards: updates `parameters` by `gradients` of the same names and shapes.
  using Apply = std::function<Status(const Tree& gradients, const Tree& parameters)>;

  /// `invalid_argument` for what does not fit.
  static Status check(const FsdpSettings& settings, int ranks);

  /// Settings have been checked. `group`, its `agreements` and `replicas`, which may be null, outlive this.
  FsdpStep(const GroupEngine& group, Agreements& agreements, const WorldOptions* replicas, FsdpSettings settings);

  /// What the next step is; the memory that the trees view is borrowed until its end. With one rank altogether gradients are clipped in
  /// place and `apply` gets the trees as they are.
  void begin(const Tree& gradients, const Tree& parameters, Apply apply);
  Action next() override;
  void abandon() override;

  /// The global norm before clipping, of the last step; nothing where nothing is clipped.
  std::optional<double> norm() const { return norm_; }
  /// Of the last step's parameters over group 0; null before the first.
  const ShardLayout* layout() const { return layout_ ? &*layout_ : nullptr; }

 private:
  /// What is under way; `begin` and `done`: nothing.
  enum class Stage : std::uint8_t { begin, agree_on_gradients, agree_on_parameters, reduce, clip, gather, done };

  bool alone() const { return group_.options().size == 1 && (replicas_ == nullptr || replicas_->size == 1); }
  bool is_planned() const;
  void plan();
  Status go_on();
  Status start_step();
  void start_agreement(Stage stage, const char* what, const Tree& tree);
  void start_reduce();
  void start_clip();
  Status apply();

  const GroupEngine& group_;
  Agreements& agreements_;
  const WorldOptions* const replicas_;
  const FsdpSettings settings_;
  ShardMover mover_;

  // The step under way.
  Tree gradients_, parameters_;
  Apply apply_;
  Stage stage_ = Stage::done;
  std::unique_ptr<Procedure> part_;  // the stage's
  const ClipSharded* clip_ = nullptr;
  Tree parameter_shards_;
  std::optional<double> norm_;

  // What the trees of the last step looked like, and what follows from it.
  Tree gradient_outline_, parameter_outline_;
  std::optional<ShardLayout> layout_;
  std::vector<ShardBucket> reductions_, gathers_;
  std::vector<Tensor> shard_memory_;
  Tree gradient_shards_;
};

}  // namespace ringlet
