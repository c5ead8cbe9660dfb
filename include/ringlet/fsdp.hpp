#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ringlet/group.hpp>
#include <ringlet/optimizers.hpp>
#include <ringlet/sharding.hpp>
#include <ringlet/tree.hpp>
#include <string>
#include <vector>

namespace ringlet {

/// How FsdpUpdater shards and moves.
struct FsdpOptions {
  /// Ranks that hold the same shard, one of each FSDP group: gradients are averaged over both (hybrid sharding). Its ranks are the ones
  /// of equal rank in their FSDP groups.
  std::optional<Group> dp_group{};
  /// Bytes of gradients, or of parameters, that are moved together; <= 0: each tensor by itself.
  std::int64_t communication_size = 32 << 20;
  /// Gradients are scaled so that their global norm is at most this. Not negative.
  std::optional<double> max_norm{};
  /// The floating dtype that gradients are reduced in; unset: their own. The averages are rounded back to the gradients' dtypes.
  std::optional<DType> reduce_dtype{};
  /// Each rank's share of the rows, such as its memory: one per rank of the FSDP group, the same on every rank. Empty: even shares.
  std::vector<double> shard_weights{};
  Stream stream{};  ///< of all its collectives
};

/// Takes a step on shards: updates `parameters` in place by `gradients` of the same names and shapes.
using ApplyGradients = std::function<void(const Tree& gradients, const Tree& parameters)>;

/// FSDP's step over full parameters, with buffers that are kept from step to step. One thread at a time.
///
/// Gradients are reduce-scattered and averaged, each rank's optimizer sees only its rows of every tensor (the optimizer's state is made for
/// them alone), and the updated rows are gathered again. Tensors keep their names, so rules by name hold, and their dtypes.
class FsdpUpdater {
 public:
  /// Throws `InvalidArgument` for options that do not fit.
  FsdpUpdater(Group fsdp_group, const FsdpOptions& options = {});
  /// What is moved from can only be assigned to, or go.
  ///@{
  FsdpUpdater(FsdpUpdater&&) noexcept;
  FsdpUpdater& operator=(FsdpUpdater&&) noexcept;
  ///@}
  ~FsdpUpdater();

  /// One step. `gradients` and `parameters` are full tensors with the same names, order and shapes, on every rank (else
  /// `InvalidArgument`, or `MismatchError` on every rank, naming the first difference); gradients are floating and may have other dtypes
  /// than the parameters. With one rank altogether: clips in place, then calls `apply` with the trees as they are. Returns the global norm
  /// before clipping where `max_norm` is set. After an error of `apply` the parameters of the ranks may differ.
  std::optional<double> apply_gradients(const Tree& gradients, const Tree& parameters, const ApplyGradients& apply);

  /// How the parameters of the last step are laid out over the FSDP group; null before the first.
  const ShardLayout* layout() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// MLX's `nn.fsdp_apply_gradients`, for any optimizer with `apply_gradients(gradients, parameters)`: reduce-scatter, optional clipping,
/// optimizer on this rank's shards, all-gather; `parameters` are updated in place. As FsdpUpdater::apply_gradients.
template <OptimizerLike T>
std::optional<double> fsdp_apply_gradients(Group fsdp_group, const Tree& gradients, const Tree& parameters, T& optimizer,
                                           const FsdpOptions& options = {}) {
  return FsdpUpdater(std::move(fsdp_group), options).apply_gradients(gradients, parameters, [&](const Tree& g, const Tree& p) {
    optimizer.apply_gradients(g, p);
  });
}

/// Scales sharded gradients, in place, so that the norm over all ranks' shards is at most `max_norm` (>= 0, else `InvalidArgument`):
/// by min(max_norm / (norm + 1e-6), 1). Returns the norm before. Squares are added in f64, so no dtype overflows. Collective.
double clip_grad_norm_sharded(Group group, const Tree& gradients, double max_norm, Stream stream = {});

/// How FullyShard shards and moves.
struct FullyShardOptions {
  /// The floating dtype that parameters are gathered and used in; unset: their own.
  std::optional<DType> compute_dtype{};
  /// The floating dtype that gradients are reduced in; unset: the gradients' own.
  std::optional<DType> reduce_dtype{};
  /// As FsdpOptions::shard_weights.
  std::vector<double> shard_weights{};
  /// Gathers that run ahead of the module in use, and reductions that run behind it. At least 0; each needs memory for one more module.
  int prefetch = 1;
  Stream stream{};  ///< of all its collectives
};

/// Parameters that live as shards (MLX's `nn.fully_shard`): a module's are gathered for as long as they are used, in its forward and in its
/// backward pass, while the next module's are on their way; gradients are reduce-scattered as they come. Every rank does the same in the
/// same order. One thread at a time.
class FullyShard {
  struct Gathered;

 public:
  /// A module's full parameters, until this goes; movable.
  class Unsharded {
   public:
    /// Names and shapes as they were added; dtype as FullyShardOptions::compute_dtype says. Read only: what is written here reaches no
    /// other rank.
    const Tree& parameters() const noexcept;

   private:
    friend class FullyShard;
    explicit Unsharded(std::shared_ptr<Gathered> gathered) : gathered_(std::move(gathered)) {}
    std::shared_ptr<Gathered> gathered_;
  };

  /// Throws `InvalidArgument` for options that do not fit.
  FullyShard(Group group, const FullyShardOptions& options = {});
  /// What is moved from can only be assigned to, or go.
  ///@{
  FullyShard(FullyShard&&) noexcept;
  FullyShard& operator=(FullyShard&&) noexcept;
  ///@}
  ~FullyShard();

  /// Adds the next module in the order of the forward pass and copies this rank's rows of its parameters, whose full tensors are not
  /// needed afterwards. Throws `MismatchError` on every rank where the ranks' trees differ. Returns its number, from 0. Collective.
  std::size_t add(std::string name, const Tree& parameters);
  /// Modules added so far.
  std::size_t modules() const noexcept;

  /// Waits until the module's parameters are gathered. `forward` starts gathering the next module, `backward` the one before.
  ///@{
  Unsharded forward(std::size_t module);
  Unsharded backward(std::size_t module);
  ///@}
  /// Starts to average the module's full gradients over the ranks. Names and shapes are the parameters'; they are read during the call
  /// only. Where more than `prefetch` modules' averages are under way, it waits for the oldest and throws its error. Once per module and
  /// step.
  void reduce_gradients(std::size_t module, const Tree& gradients);
  /// Ends the step: waits for all its gradients and throws the first error. What is gathered from here on are the parameters as they are
  /// then; an `Unsharded` of before keeps the old ones.
  void finish();

  /// This rank's shards, named "module.parameter", and, after finish(), the averaged gradients of the step's modules for them: what an
  /// optimizer's `apply_gradients` takes. The memory is owned by this object; gradients are valid until the next reduce_gradients().
  ///@{
  const Tree& parameters() const noexcept;
  const Tree& gradients() const noexcept;
  ///@}
  /// Of all modules added so far: for checkpoints.
  ShardLayout layout() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringlet
