#pragma once

#include <optional>
#include <ringlet/sharding.hpp>
#include <ringlet/tree.hpp>
#include <vector>

#include "core/engine/options.hpp"
#include "core/engine/procedure.hpp"
#include "core/sharding/shard_bucket.hpp"

namespace ringlet {

/// The buckets of a tree, in its order: tensors of one dtype together, closed at `communication_size` bytes of what moves (<= 0: each by
/// itself). `wire_dtype`: what all move in; unset: their own dtypes.
std::vector<ShardBucket> make_buckets(const Tree& full, const ShardLayout& layout, std::int64_t communication_size,
                                      std::optional<DType> wire_dtype);

/// Packs buckets for collectives between full tensors and this rank's shards, and unpacks them. All ranks of the group do the same. Keeps
/// memory for the next step. A bucket has its memory from start to the end of the unpacking.
class ShardMover {
 public:
  /// Averages are taken over the ranks of `group`, which outlives this, each of which stands for `replicas` ranks.
  explicit ShardMover(const WorldOptions& group, int replicas = 1) : group_(group), averaged_ranks_(group.size * replicas) {}

  const WorldOptions& group() const { return group_; }

  /// Averages full gradients into shards: reduce-scatter and division by the number of ranks. What on_reduced() returns may be summed over
  /// replicas before finish_reduce().
  ///@{
  Result<CollectiveTask> start_reduce(ShardBucket& bucket, const Tree& full);
  TensorView on_reduced(ShardBucket& bucket) const;
  void finish_reduce(ShardBucket& bucket, const Tree& shards);
  ///@}
  /// Gathers every rank's shards into the full tensors.
  ///@{
  Result<CollectiveTask> start_gather(ShardBucket& bucket, const Tree& shards);
  void finish_gather(ShardBucket& bucket, const Tree& full);
  ///@}

 private:
  /// By the number of ranks whose average is taken.
  void divide(TensorView sum) const;
  void lend(ShardBucket& bucket);
  void take_back(ShardBucket& bucket) { spare_.push_back(bucket.take_memory()); }

  const WorldOptions& group_;
  const int averaged_ranks_;
  std::vector<BucketMemory> spare_;
};

/// Moves all buckets of a tree, three at a time. Group 0 is the mover's, group 1 its replicas.
class ShardMove final : public Procedure {
 public:
  /// Everything is borrowed until the end. `replicas`: the group of those who have the same shard; null where there is none.
  ///@{
  static ShardMove reduce(ShardMover& mover, const WorldOptions* replicas, std::vector<ShardBucket>& buckets, const Tree& full,
                          const Tree& shards) {
    return {Direction::reduce, mover, replicas, buckets, full, shards};
  }
  static ShardMove gather(ShardMover& mover, std::vector<ShardBucket>& buckets, const Tree& shards, const Tree& full) {
    return {Direction::gather, mover, nullptr, buckets, full, shards};
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
  std::size_t started_ = 0, finished_ = 0;  // buckets
  Awaited awaited_ = Awaited::nothing;
};

}  // namespace ringlet
