#include "core/sharding/shard_moves.hpp"

#include <algorithm>
#include <utility>

#include "core/engine/requests.hpp"
#include "core/gradients/weight.hpp"

namespace ringlet {

namespace {

/// The number of buckets that are packed and under way at a time. Only their copies take memory.
constexpr std::size_t kInFlight = 3;

}  // namespace

std::vector<ShardBucket> make_buckets(const Tree& full, const ShardLayout& layout, std::int64_t communication_size,
                                      const std::optional<Wire>& wire) {
  struct Open {
    WireFormat wire_format;
    std::vector<std::string> names;
    std::int64_t bytes;
  };
  std::vector<Open> open;
  std::vector<ShardBucket> buckets;
  for (const auto& [name, values] : full) {
    const WireFormat wire_format = wire_format_of(values, wire);
    auto it = std::find_if(open.begin(), open.end(), [&](const Open& bucket) { return bucket.wire_format == wire_format; });
    if (it == open.end()) it = open.insert(open.end(), {wire_format, {}, 0});
    it->names.push_back(name);
    it->bytes += static_cast<std::int64_t>(wire_format.bytes(values.count()));
    const std::int64_t size = wire_format.bucket_bytes(communication_size);
    if (size > 0 && it->bytes < size) continue;
    buckets.emplace_back(layout, std::move(it->names), wire_format);
    open.erase(it);
  }
  for (Open& rest : open) buckets.emplace_back(layout, std::move(rest.names), rest.wire_format);
  return buckets;
}

void ShardMover::divide(TensorView sum) const { group_.kernels->divide(sum.dtype())(sum.data(), sum.count(), averaged_ranks_); }

void ShardMover::lend(ShardBucket& bucket) {
  if (spare_.empty()) return;
  bucket.lend_memory(std::move(spare_.back()));
  spare_.pop_back();
}

Result<CollectiveTask> ShardMover::start_reduce(ShardBucket& bucket, const Tree& full, ShardResiduals* residuals) {
  lend(bucket);
  const simd::FloatEnvironment environment;
  if (const auto& blocks = bucket.wire_format().blocks) {
    bucket.pack_full_in_blocks(full, factor_ / averaged_ranks_, residuals == nullptr ? nullptr : &residuals->gradients, *group_.kernels);
    return for_purpose(Purpose::shards,
                       make_reduce_scatter_blocks(*blocks, bucket.packed_bytes(), bucket.reduced(group_.rank), bucket.counts(), group_));
  }
  bucket.pack_full(full, *group_.kernels);
  const TensorView packed = bucket.packed();
  weigh(packed.data(), packed.dtype(), packed.count(), factor_, *group_.kernels);
  if (!has_replicas())
    return for_purpose(Purpose::shards, make_mean_scatter_v(packed, bucket.reduced(group_.rank), bucket.counts(), group_));
  if (is_divided_first(packed.dtype())) divide(packed);
  return for_purpose(Purpose::shards, make_reduce_scatter_v(ReduceOp::sum, packed, bucket.reduced(group_.rank), bucket.counts(), group_));
}

Result<CollectiveTask> ShardMover::start_sum_of_replicas(ShardBucket& bucket, std::size_t number, const WorldOptions& replicas,
                                                         ShardResiduals* residuals) {
  const simd::FloatEnvironment environment;
  const TensorView reduced = bucket.reduced(group_.rank);
  if (const auto& blocks = bucket.wire_format().blocks) {
    const Bytes packed =
        bucket.pack_reduced_in_blocks(group_.rank, number, residuals == nullptr ? nullptr : &residuals->sums, *group_.kernels);
    return for_purpose(Purpose::shards, make_all_reduce_blocks(*blocks, packed, bucket.left(), replicas));
  }
  // As in MLX, the division is between the sums over both groups; for f16, whose sums could overflow, it is before both.
  if (!is_divided_first(bucket.wire_format().dtype)) divide(reduced);
  return for_purpose(Purpose::shards, make_all_reduce(ReduceOp::sum, reduced, reduced, 1.0, replicas));
}

void ShardMover::finish_reduce(ShardBucket& bucket, const Tree& shards) {
  const simd::FloatEnvironment environment;
  if (const auto& blocks = bucket.wire_format().blocks; blocks && has_replicas())
    read_blocks(*blocks, bucket.packed_bytes().data(), bucket.reduced(group_.rank), *group_.kernels);
  bucket.unpack_reduced(shards, *group_.kernels);
  take_back(bucket);
}

Result<CollectiveTask> ShardMover::start_gather(ShardBucket& bucket, const Tree& shards, const Tree* before) {
  lend(bucket);
  const simd::FloatEnvironment environment;
  bucket.pack_shards(shards, group_.rank, *group_.kernels);
  if (before != nullptr) {
    bucket.pack_shards(*before, (group_.rank + group_.size - 1) % group_.size, *group_.kernels);
    return for_purpose(Purpose::shards, make_all_gather_of_rest(bucket.part(group_.rank), bucket.packed(), bucket.counts(), group_));
  }
  return for_purpose(Purpose::shards, make_all_gather_v(bucket.part(group_.rank), bucket.packed(), bucket.counts(), group_));
}

void ShardMover::finish_gather(ShardBucket& bucket, const Tree& full) {
  const simd::FloatEnvironment environment;
  bucket.unpack_full(full, *group_.kernels);
  take_back(bucket);
}

Procedure::Action ShardMove::next() {
  const Awaited ended = std::exchange(awaited_, Awaited::nothing);
  if (ended == Awaited::oldest && direction_ == Direction::reduce && replicas_ != nullptr && replicas_->size > 1) {
    awaited_ = Awaited::replicas;
    return run(mover_.start_sum_of_replicas(buckets_[finished_], finished_, *replicas_, residuals_), 1);
  }
  if (ended != Awaited::nothing) finish_oldest();
  if (started_ < buckets_.size() && started_ - finished_ < kInFlight) return start_next();
  if (finished_ == started_) return Done{};
  awaited_ = Awaited::oldest;
  return WaitForOldest{};
}

Procedure::Action ShardMove::start_next() {
  ShardBucket& bucket = buckets_[started_++];
  return start(direction_ == Direction::reduce ? mover_.start_reduce(bucket, full_, residuals_)
                                               : mover_.start_gather(bucket, shards_, before_));
}

void ShardMove::finish_oldest() {
  ShardBucket& bucket = buckets_[finished_++];
  if (direction_ == Direction::reduce)
    mover_.finish_reduce(bucket, shards_);
  else
    mover_.finish_gather(bucket, full_);
}

}  // namespace ringlet
