#pragma once

#include <optional>
#include <ringlet/sharding.hpp>
#include <ringlet/tree.hpp>
#include <ringlet/wire.hpp>
#include <vector>

#include "core/engine/options.hpp"
#include "core/engine/procedure.hpp"
#include "core/sharding/shard_bucket.hpp"
#include "core/sharding/shard_residuals.hpp"

namespace ringlet {

/// Makes the buckets of a tree in the order of its leaves. A bucket has tensors that are moved in one way and is closed at
/// `communication_size` moved bytes, in blocks at 2 MiB already (if it is <= 0, each tensor has a bucket of its own). All are moved as
/// `wire` says or, if unset, in their own dtypes.
std::vector<ShardBucket> make_buckets(const Tree& full, const ShardLayout& layout, std::int64_t communication_size,
                                      const std::optional<Wire>& wire);

/// Packs buckets for collectives between full tensors and this rank's shards, and unpacks them. All ranks of the group make the same calls.
/// A bucket has its memory from the start of its collective until it is unpacked; the mover keeps the memory for the next step.
class ShardMover {
 public:
  /// Averages are taken over the ranks of `group`, each of which stands for `replicas` ranks. `group` outlives this object.
  explicit ShardMover(const WorldOptions& group, int replicas = 1) : group_(group), averaged_ranks_(group.size * replicas) {}

  const WorldOptions& group() const { return group_; }
  /// What this rank's gradients are multiplied by from now on, so that a mean over the ranks is one over samples. Where it is 0, the
  /// gradients may be anything.
  void set_factor(double factor) { factor_ = factor; }

  /// Averages full gradients into shards, by the mean of all_mean() or, where there are replicas, by a reduce-scatter and a division by the
  /// number of all ranks, whose result start_sum_of_replicas() sums over these before finish_reduce(). In blocks each gradient is divided
  /// before it is rounded, so that residuals, null without error feedback, mean the same whatever the number of ranks. `number` is the
  /// bucket's among those of `full`.
  ///@{
  Result<CollectiveTask> start_reduce(ShardBucket& bucket, const Tree& full, ShardResiduals* residuals);
  Result<CollectiveTask> start_sum_of_replicas(ShardBucket& bucket, std::size_t number, const WorldOptions& replicas,
                                               ShardResiduals* residuals);
  void finish_reduce(ShardBucket& bucket, const Tree& shards);
  ///@}
  /// Gathers every rank's shards into the full tensors. `before` has the shards of the rank before this one, if every rank has those, which
  /// then do not travel; else it is null.
  ///@{
  Result<CollectiveTask> start_gather(ShardBucket& bucket, const Tree& shards, const Tree* before = nullptr);
  void finish_gather(ShardBucket& bucket, const Tree& full);
  ///@}

 private:
  bool has_replicas() const { return averaged_ranks_ != group_.size; }
  /// Divides by the number of ranks whose average is taken.
  void divide(TensorView sum) const;
  void lend(ShardBucket& bucket);
  void take_back(ShardBucket& bucket) { spare_.push_back(bucket.take_memory()); }

  const WorldOptions& group_;
  const int averaged_ranks_;
  double factor_ = 1;
  std::vector<BucketMemory> spare_;
};

/// Moves all buckets of a tree, three at a time. Group 0 is the mover's; group 1 contains its replicas.
class ShardMove final : public Procedure {
 public:
  /// All arguments are borrowed until the end. `replicas` is the group of the ranks that have the same shard, or null if there is none.
  /// `residuals`, null without error feedback, begin a step, which their owner commits.
  ///@{
  static ShardMove reduce(ShardMover& mover, const WorldOptions* replicas, std::vector<ShardBucket>& buckets, const Tree& full,
                          const Tree& shards, ShardResiduals* residuals = nullptr) {
    ShardMove move{Direction::reduce, mover, replicas, buckets, full, shards};
    move.residuals_ = residuals;
    if (residuals != nullptr) residuals->begin();
    return move;
  }
  static ShardMove gather(ShardMover& mover, std::vector<ShardBucket>& buckets, const Tree& shards, const Tree& full,
                          const Tree* before = nullptr) {
    ShardMove move{Direction::gather, mover, nullptr, buckets, full, shards};
    move.before_ = before;
    return move;
  }
  ///@}
  Action next() override;

 private:
  enum class Direction : std::uint8_t { reduce, gather };
  enum class Awaited : std::uint8_t { nothing, oldest, replicas };

  ShardMove(Direction direction, ShardMover& mover, const WorldOptions* replicas, std::vector<ShardBucket>& buckets, const Tree& full,
            const Tree& shards)
      : direction_(direction), mover_(mover), replicas_(replicas), buckets_(buckets), full_(full), shards_(shards) {}
  Action start_next();
  void finish_oldest();

  const Direction direction_;
  ShardMover& mover_;
  const WorldOptions* const replicas_;
  std::vector<ShardBucket>& buckets_;
  const Tree& full_;
  const Tree& shards_;
  ShardResiduals* residuals_ = nullptr;     // of a reduction
  const Tree* before_ = nullptr;            // see ShardMover::start_gather()
  std::size_t started_ = 0, finished_ = 0;  // buckets
  Awaited awaited_ = Awaited::nothing;
};

}  // namespace ringlet
