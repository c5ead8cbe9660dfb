#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ringlet/sharding.hpp>
#include <ringlet/tree.hpp>
#include <ringlet/wire.hpp>
#include <vector>

#include "core/engine/group_engine.hpp"
#include "core/engine/procedure.hpp"
#include "core/gradients/tree_agreement.hpp"
#include "core/sharding/clip.hpp"
#include "core/sharding/shard_moves.hpp"

namespace ringlet {

/// The settings of FsdpStep, with the meaning of FsdpOptions in ringlet/fsdp.hpp.
struct FsdpSettings {
  std::int64_t communication_size = 32 << 20;
  std::optional<double> max_norm{};
  std::optional<Wire> reduce_dtype{};
  std::vector<double> shard_weights{};
};

/// FSDP's optimizer step over full parameters, taken repeatedly: gradients are reduce-scattered and averaged, `apply` gets this rank's rows
/// of every tensor, and the updated rows are gathered. Buffers are kept from step to step, and with error feedback so are residuals, as
/// long as the gradients' tree stays the same; a step whose `apply` fails leaves those before it. Group 0 shards the tensors; group 1, if
/// there is one, contains the ranks that hold the same shard.
class FsdpStep final : public Procedure {
 public:
  /// A function that takes a step on shards: it updates `parameters` by `gradients` of the same names and shapes.
  using Apply = std::function<Status(const Tree& gradients, const Tree& parameters)>;

  /// Returns `invalid_argument` for settings that do not fit.
  static Status check(const FsdpSettings& settings, int ranks);

  /// `settings` must have passed check(). `group`, its `agreements` and `replicas`, which may be null, outlive this object.
  FsdpStep(const GroupEngine& group, Agreements& agreements, const WorldOptions* replicas, FsdpSettings settings);

  /// Sets the arguments of the next step; the memory that the trees view is borrowed until its end. With only one rank in total, gradients
  /// are clipped in place and `apply` gets the given trees.
  void begin(const Tree& gradients, const Tree& parameters, Apply apply);
  Action next() override;
  void abandon() override;

  /// The global norm before clipping, of the last step; nothing if max_norm is not set.
  std::optional<double> norm() const { return norm_; }
  /// The layout of the last step's parameters over group 0; null before the first step.
  const ShardLayout* layout() const { return layout_ ? &*layout_ : nullptr; }
  ShardResiduals& residuals() { return residuals_; }

 private:
  /// The stage that is under way. In `begin` and `done` nothing is.
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
  std::unique_ptr<Procedure> part_;  // the procedure of the stage
  const ClipSharded* clip_ = nullptr;
  Tree parameter_shards_;
  std::optional<double> norm_;

  // The outlines of the last step's trees, and everything that was derived from them.
  Tree gradient_outline_, parameter_outline_;
  std::optional<ShardLayout> layout_;
  std::vector<ShardBucket> reductions_, gathers_;
  std::vector<Tensor> shard_memory_;
  Tree gradient_shards_;
  ShardResiduals residuals_;
};

}  // namespace ringlet
