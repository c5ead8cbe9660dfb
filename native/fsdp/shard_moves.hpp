#pragma once

#include <optional>
#include <ringlet/group.hpp>
#include <ringlet/sharding.hpp>
#include <ringlet/tree.hpp>
#include <vector>

#include "core/sharding/shard_bucket.hpp"

namespace ringlet::native {

/// The buckets of a tree, in its order: tensors of one dtype together, closed at `communication_size` bytes of what moves (<= 0: each by
/// itself). `wire_dtype`: what all move in; unset: their own dtypes.
std::vector<ShardBucket> make_buckets(const Tree& full, const ShardLayout& layout, std::int64_t communication_size,
                                      std::optional<DType> wire_dtype);

/// Moves buckets between full tensors and this rank's shards. All ranks of the group do the same. Keeps memory for the next step.
class ShardMover {
 public:
  /// With a `dp_group` averages are taken over both groups' ranks.
  ShardMover(Group group, std::optional<Group> dp_group, Stream stream);

  /// Averages full gradients into shards: reduce-scatter, division by the number of ranks, sum over `dp_group`.
  void reduce(std::vector<ShardBucket>& buckets, const Tree& full, const Tree& shards);
  /// Gathers every rank's shards into the full tensors.
  void gather(std::vector<ShardBucket>& buckets, const Tree& shards, const Tree& full);

  // The steps of one bucket. It has its memory from start to the end of the unpacking.
  Work start_reduce(ShardBucket& bucket, const Tree& full);
  void finish_reduce(ShardBucket& bucket, const Tree& shards);
  Work start_gather(ShardBucket& bucket, const Tree& shards);
  void finish_gather(ShardBucket& bucket, const Tree& full);

 private:
  template <class Start, class Finish>
  void in_turns(std::vector<ShardBucket>& buckets, Start start, Finish finish);
  /// By the number of ranks whose average is taken.
  void divide(TensorView sum) const;
  void lend(ShardBucket& bucket);
  void take_back(ShardBucket& bucket) { spare_.push_back(bucket.take_memory()); }

  Group group_;
  std::optional<Group> dp_group_;
  Stream stream_;
  std::vector<BucketMemory> spare_;
};

}  // namespace ringlet::native
