#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ringlet/group.hpp>
#include <ringlet/optimizers.hpp>
#include <ringlet/sharding.hpp>
#include <ringlet/tree.hpp>
#include <ringlet/wire.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet {

class Checkpoint;
class ElasticFullyShard;

/// The name in a checkpoint of the residuals that FSDP's reductions leave. An ElasticTrainer adds those of its ElasticShards as that.
inline constexpr std::string_view kShardResiduals = "shard_residuals";

/// Options of FsdpUpdater.
struct FsdpOptions {
  /// For hybrid sharding: the group of the ranks that hold the same shard, one from each FSDP group, so that all have the same rank in
  /// their FSDP groups. Gradients are averaged over both groups.
  std::optional<Group> dp_group{};
  /// Bytes of gradients, or of parameters, that one collective moves. If it is <= 0, each tensor is moved by itself.
  std::int64_t communication_size = 32 << 20;
  /// If set, gradients are scaled so that their global norm is at most this. Not negative.
  std::optional<double> max_norm{};
  /// The floating dtype that gradients are reduced in, or Wire::int8() or Wire::int4(): then each rank rounds its gradients to blocks, and
  /// a row's owner adds them in f32 and rounds no more. If unset, it is their own dtype. The averages are rounded back to the gradients'
  /// dtypes. With error feedback, for which an FsdpUpdater is needed, each rank keeps 8 bytes per element of all tensors in blocks.
  std::optional<Wire> reduce_dtype{};
  /// Each rank's share of the rows, in proportion to its memory, for instance: one weight per rank of the FSDP group, the same on every
  /// rank. If empty, all shares are even.
  std::vector<double> shard_weights{};
  Stream stream{};  ///< the stream of all its collectives
};

/// A function that takes a step on shards: it updates `parameters` in place with `gradients` of the same names and shapes.
using ApplyGradients = std::function<void(const Tree& gradients, const Tree& parameters)>;

/// FSDP's optimizer step over full parameters, with buffers that are kept from step to step. Only one thread may use it at a time.
///
/// Gradients are reduce-scattered and averaged; each rank's optimizer sees only its rows of every tensor, and makes state for those alone;
/// the updated rows are gathered again. Tensors keep their dtypes and their names, so rules that go by name still apply. Residuals of error
/// feedback belong to the tree of gradients: another one begins without. A step whose `apply` throws leaves those before it.
class FsdpUpdater {
 public:
  /// Throws `InvalidArgument` for invalid options.
  FsdpUpdater(Group fsdp_group, const FsdpOptions& options = {});
  /// An object that was moved from can only be assigned to or destroyed.
  ///@{
  FsdpUpdater(FsdpUpdater&&) noexcept;
  FsdpUpdater& operator=(FsdpUpdater&&) noexcept;
  ///@}
  ~FsdpUpdater();

  /// Takes one step. `gradients` and `parameters` are full tensors with the same names, order and shapes on every rank; otherwise it throws
  /// `InvalidArgument`, or on every rank a `MismatchError` that names the first difference. Gradients are floating and may have other
  /// dtypes than the parameters. With only one rank in total it clips the gradients in place and calls `apply` with the given trees.
  /// Returns the global norm before clipping if `max_norm` is set. If `apply` throws, the parameters of the ranks may differ afterwards.
  std::optional<double> apply_gradients(const Tree& gradients, const Tree& parameters, const ApplyGradients& apply);

  /// The layout of the last step's parameters over the FSDP group, or null before the first step.
  const ShardLayout* layout() const noexcept;
  /// Adds the residuals of error feedback, if there is such, to a checkpoint that is saved or loaded by the FSDP group between two steps,
  /// while this object lives. Gradients are known by their order. Each rank has its own (Checkpoint::add_addends). Those of sums between
  /// replicas are for an FSDP group of as many ranks only.
  void add_to(Checkpoint& checkpoint, std::string_view name = kShardResiduals);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

namespace detail {
/// Throws `InvalidArgument` where the options want error feedback, which needs an updater for all steps.
FsdpUpdater updater_of_one_step(Group group, const FsdpOptions& options);
}  // namespace detail

/// MLX's `nn.fsdp_apply_gradients`, for any optimizer with `apply_gradients(gradients, parameters)`: reduce-scatter, optional clipping, the
/// optimizer on this rank's shards, all-gather. `parameters` are updated in place. Arguments, result and errors are those of
/// FsdpUpdater::apply_gradients.
template <OptimizerLike T>
std::optional<double> fsdp_apply_gradients(Group fsdp_group, const Tree& gradients, const Tree& parameters, T& optimizer,
                                           const FsdpOptions& options = {}) {
  return detail::updater_of_one_step(std::move(fsdp_group), options)
      .apply_gradients(gradients, parameters, [&](const Tree& g, const Tree& p) { optimizer.apply_gradients(g, p); });
}

/// Scales sharded gradients in place by min(max_norm / (norm + 1e-6), 1), so that the norm over all ranks' shards is at most `max_norm` (>=
/// 0, else `InvalidArgument`). Returns the norm before scaling. Squares are added in f64, so no dtype overflows. Collective.
double clip_grad_norm_sharded(Group group, const Tree& gradients, double max_norm, Stream stream = {});

/// Options of FullyShard.
struct FullyShardOptions {
  /// The floating dtype that parameters are gathered and used in. If unset, it is their own.
  std::optional<DType> compute_dtype{};
  /// How gradients are reduced, as FsdpOptions::reduce_dtype. Error feedback takes memory for full tensors of all modules, which are
  /// otherwise nowhere.
  std::optional<Wire> reduce_dtype{};
  /// Each rank's share of the rows, as in FsdpOptions::shard_weights.
  std::vector<double> shard_weights{};
  /// The number of gathers that run ahead of the module in use, and of reductions that run behind it. At least 0; each needs memory for one
  /// more module.
  int prefetch = 1;
  Stream stream{};  ///< the stream of all its collectives
};

/// Parameters that are kept as shards (MLX's `nn.fully_shard`). A module's parameters are gathered for as long as they are used in its
/// forward or backward pass, while the next module's are already being gathered; gradients are reduce-scattered as they come. Every rank
/// makes the same calls in the same order. Only one thread may use it at a time.
class FullyShard {
  struct Gathered;

 public:
  /// A module's full parameters, which live as long as this object. Movable.
  class Unsharded {
   public:
    /// The full parameters, with the names and shapes that add() was given, in FullyShardOptions::compute_dtype. They are for reading only:
    /// a change to them reaches no other rank.
    const Tree& parameters() const noexcept;

   private:
    friend class FullyShard;
    explicit Unsharded(std::shared_ptr<Gathered> gathered) : gathered_(std::move(gathered)) {}
    std::shared_ptr<Gathered> gathered_;
  };

  /// Throws `InvalidArgument` for invalid options.
  FullyShard(Group group, const FullyShardOptions& options = {});
  /// An object that was moved from can only be assigned to or destroyed.
  ///@{
  FullyShard(FullyShard&&) noexcept;
  FullyShard& operator=(FullyShard&&) noexcept;
  ///@}
  ~FullyShard();

  /// Adds the next module in the order of the forward pass and returns its number, from 0. Copies this rank's rows of the parameters; the
  /// full tensors are not needed afterwards. Throws `MismatchError` on every rank if the ranks' trees differ. Collective.
  std::size_t add(std::string name, const Tree& parameters);
  /// The number of modules added so far.
  std::size_t modules() const noexcept;

  /// Waits until the module's parameters are gathered. `forward` also starts gathering the next module, `backward` the previous one.
  ///@{
  Unsharded forward(std::size_t module);
  Unsharded backward(std::size_t module);
  ///@}
  /// Starts to average the module's full gradients over the ranks; call it once per module and step. Names and shapes are the parameters'.
  /// The gradients are read during the call only. If averages of more than `prefetch` modules are under way, it waits for the oldest and
  /// throws its error.
  void reduce_gradients(std::size_t module, const Tree& gradients);
  /// Ends the step: waits for all its gradients and throws the first error. Parameters that are gathered from now on have the values that
  /// the shards then have; an earlier `Unsharded` keeps the old ones.
  void finish();

  /// This rank's shards, named "module.parameter", and, after finish(), the averaged gradients of the step's modules for them: the
  /// arguments of an optimizer's `apply_gradients`. This object owns the memory; gradients are valid until the next reduce_gradients().
  ///@{
  const Tree& parameters() const noexcept;
  const Tree& gradients() const noexcept;
  ///@}
  /// The layout of all modules added so far, for checkpoints.
  ShardLayout layout() const;
  /// Adds the residuals of error feedback, if there is such, of all modules to a checkpoint that is saved or loaded between two steps,
  /// while this object lives. Each rank has its own (Checkpoint::add_addends). The shards are added by the caller.
  void add_to(Checkpoint& checkpoint, std::string_view name = kShardResiduals);

 private:
  friend class ElasticFullyShard;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringlet
