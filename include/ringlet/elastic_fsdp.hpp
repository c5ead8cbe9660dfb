#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ringlet/checkpoint.hpp>
#include <ringlet/dtype.hpp>
#include <ringlet/fsdp.hpp>
#include <ringlet/group.hpp>
#include <ringlet/optimizers.hpp>
#include <ringlet/stream.hpp>
#include <ringlet/tree.hpp>
#include <ringlet/wire.hpp>
#include <string>
#include <string_view>

namespace ringlet {

/// Makes an optimizer, always of the same kind: one for each shard that a rank holds, in each world.
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>()>;

/// Options of ElasticFsdp. All but `shard_weight` are the same on all ranks.
struct ElasticFsdpOptions {
  /// How many ranks hold each row of the optimizer's state: 1 or 2. With 2, no loss of one rank costs a step; with 1, each loss means the
  /// newest checkpoint.
  int copies = 2;
  /// This rank's share of the rows, in proportion to its memory, for instance. Finite and not negative; a rank of weight 0 holds none.
  double shard_weight = 1;
  /// How many bytes of rows a rank sends, or receives, in one step for second holders that are missing after a loss. Positive.
  std::int64_t rebuild_size = 32 << 20;
  /// Bytes of gradients, or of parameters, that one collective moves. If it is <= 0, each tensor is moved by itself.
  std::int64_t communication_size = 32 << 20;
  /// If set, gradients are scaled so that their global norm is at most this. Not negative.
  std::optional<double> max_norm{};
  /// How gradients are reduced, as FsdpOptions::reduce_dtype. Residuals of error feedback count from update() on, so a step that is not
  /// committed leaves those before it. A rank that joins has none.
  std::optional<Wire> reduce_dtype{};
  Stream stream{};  ///< the stream of all its collectives
};

/// Sharded state that outlives the ranks that hold it: an ElasticFsdp or an ElasticFullyShard. Each row of the optimizer's state has two
/// holders, on different machines where there are several, and both compute its update. So when a rank dies, at whatever moment, no step is
/// lost. The rows are then spread anew over the ranks that are left, while these train on: the next step is computed at once, and before it
/// ends each row is at its new first holder. The second holders get theirs within the next steps, in slices. Until a row is there a second
/// time, the loss of its holder means the newest checkpoint.
///
/// An ElasticTrainer that is given such an object drives it. In a loop of the program's own each world begins with enter(), and a step is:
/// average the gradients, vote (Group::agree()), update(), gather(). There rows move while gradients are averaged; with an ElasticTrainer
/// they move from the beginning of the step. docs/elastic.md has both.
///
/// Beside its own rows a rank holds as many of another one: with P parameters, n ranks, and AdamW in f32 8P/n bytes more of state, and 4P/n
/// of averaged gradients. After a change of the ranks it has both the old and the new ones, from enter() until update(). Only one thread
/// may use it at a time.
class ElasticShards {
 public:
  ElasticShards(const ElasticShards&) = delete;
  ElasticShards& operator=(const ElasticShards&) = delete;

  /// Begins in a world: the first one, one that lacks ranks, or one with new ranks. Collective. Ranks without the last step's parameters
  /// get them, and in the first world and after loaded() all rows move to their holders; in others they move later. If a rank is lost
  /// meanwhile it throws `PeerLost`, and is to be called again in the next world.
  ///
  /// Returns an empty text, or which rows are lost with all their holders, the same on all ranks. Then load_checkpoint() is to fill what
  /// add_to() adds, and loaded() follows. Throws `MismatchError` where the ranks' parameters, optimizers or options differ.
  [[nodiscard]] std::string enter(Group world);
  /// Takes the optimizer's step on the rows that this rank holds. To be called on all ranks or on none, once their gradients are averaged.
  /// Local.
  void update();
  /// Brings updated rows to the full parameters of all ranks, where there are such. Collective. Where it fails, the next enter() does it;
  /// the step is done all the same. An ElasticTrainer calls it at the end of Step::commit().
  void gather();

  /// Adds the parameters, and the optimizer's state for the rows that this rank is the first to hold, as "<parameters>.<name>" and
  /// "<optimizer>.<name>.<slot>", to be saved or loaded in this world. To be called on all ranks: it waits for rows that move.
  void add_to(Checkpoint& checkpoint, std::string_view parameters = "parameters", std::string_view optimizer = "optimizer") const;
  /// After load_checkpoint(): sets the optimizer's step, and fills the second holders, at once. Collective.
  void loaded(std::uint64_t step);
  /// Says that this rank's rows are not valid any more: the others went on without it. The next enter() brings it theirs.
  void forget() noexcept;

  /// How many steps the optimizer has taken.
  std::uint64_t step() const noexcept;
  /// The layout of the rows over the ranks of this world.
  ShardLayout layout() const;
  /// The bytes of rows, of all ranks, that only one rank has since a loss: the second holders get them within the next steps. 0 with one
  /// copy.
  std::size_t bytes_to_rebuild() const;
  /// The bytes of the optimizer's state that this rank holds, as first and as second holder.
  std::size_t state_bytes() const noexcept;

 private:
  friend class ElasticFsdp;
  friend class ElasticFullyShard;
  friend class ElasticTrainer;
  struct State;
  explicit ElasticShards(std::unique_ptr<State> state);
  ~ElasticShards();

  const std::unique_ptr<State> state_;
};

/// FSDP's optimizer step over full parameters, as FsdpUpdater, in an elastic group.
class ElasticFsdp final : public ElasticShards {
 public:
  /// `parameters` are full tensors of real dtypes, borrowed until this object is destroyed, and the same on every rank, except on one that
  /// joins the others, which gets theirs. Throws `InvalidArgument` for invalid options and dtypes.
  ElasticFsdp(Group world, const Tree& parameters, MakeOptimizer make_optimizer, const ElasticFsdpOptions& options = {});

  /// Averages full gradients, of the parameters' names and shapes, and brings the averaged rows to both their holders; clips their norm.
  /// Collective. It changes nothing that lasts, and only reads the gradients. Returns the norm before clipping if `max_norm` is set.
  ///
  /// `share` is what the gradients are multiplied by before the plain mean over the ranks is taken: this rank's part of the samples times
  /// the number of ranks. Where it is 0 the gradients may be anything. In the step of an ElasticTrainer, which leaves it out, ranks are
  /// weighed by their samples; elsewhere it is 1 then. Throws like FsdpUpdater::apply_gradients().
  ///@{
  std::optional<double> average(const Tree& gradients, double share);
  std::optional<double> average(const Tree& gradients);
  ///@}

 private:
  struct Full;
  Full& full() const noexcept;
};

/// Options of ElasticFullyShard. All but `shard_weight` are the same on all ranks.
struct ElasticFullyShardOptions {
  int copies = 2;                        ///< as ElasticFsdpOptions::copies, of parameters and state
  double shard_weight = 1;               ///< as ElasticFsdpOptions::shard_weight
  std::int64_t rebuild_size = 32 << 20;  ///< as ElasticFsdpOptions::rebuild_size
  std::optional<DType> compute_dtype{};  ///< as FullyShardOptions::compute_dtype
  std::optional<Wire> reduce_dtype{};    ///< as FullyShardOptions::reduce_dtype; residuals as in ElasticFsdpOptions
  std::optional<double> max_norm{};      ///< as ElasticFsdpOptions::max_norm
  int prefetch = 1;                      ///< as FullyShardOptions::prefetch
  Stream stream{};                       ///< the stream of all its collectives
};

/// Parameters that are kept as shards, as FullyShard, in an elastic group. A second holder costs 4P/n bytes more than with ElasticFsdp, for
/// its rows of the parameters. gather() has nothing to do.
class ElasticFullyShard final : public ElasticShards {
 public:
  /// Throws `InvalidArgument` for invalid options.
  ElasticFullyShard(Group world, MakeOptimizer make_optimizer, const ElasticFullyShardOptions& options = {});

  /// Adds the next module in the order of the forward pass, before the first enter(), and returns its number, from 0. Copies the rows that
  /// this rank holds; the full tensors are not needed afterwards. They are the same on every rank, except on one that joins the others,
  /// which gets theirs. Not collective: whether the ranks' modules fit shows enter().
  std::size_t add(std::string name, const Tree& parameters);
  /// The number of modules added so far.
  std::size_t modules() const noexcept;

  /// The bytes of the parameters that this rank holds, as first and as second holder.
  std::size_t parameter_bytes() const noexcept;

  /// As FullyShard's. What they return is to be dropped before the next enter().
  ///@{
  FullyShard::Unsharded forward(std::size_t module);
  FullyShard::Unsharded backward(std::size_t module);
  ///@}
  /// As FullyShard::reduce_gradients(). Each step has gradients of all modules.
  void reduce_gradients(std::size_t module, const Tree& gradients);
  /// Ends the step's gradients: waits for their averages, brings these to both holders of each row, and clips their norm. It changes
  /// nothing that lasts. Collective. Returns the norm before clipping if `max_norm` is set. Throws the first error, and `InvalidArgument`
  /// if a module's gradients were not given.
  std::optional<double> finish();
  /// Sets this rank's part of the average of the gradients that follow, as the argument of ElasticFsdp::average(). An ElasticTrainer sets
  /// it at each step.
  void set_share(double share) noexcept;

 private:
  struct Modules;
  Modules& all() const noexcept;
};

}  // namespace ringlet
