#include "native/fsdp/shard_moves.hpp"

#include <algorithm>
#include <deque>

#include "native/group_access.hpp"

namespace ringlet::native {

namespace {

/// Buckets that are packed and under way at a time: their copies are all the memory that moving takes.
constexpr std::size_t kInFlight = 3;

}  // namespace

std::vector<ShardBucket> make_buckets(const Tree& full, const ShardLayout& layout, std::int64_t communication_size,
                                      std::optional<DType> wire_dtype) {
  struct Open {
    DType wire;
    std::vector<std::string> names;
    std::int64_t bytes;
  };
  std::vector<Open> open;
  std::vector<ShardBucket> buckets;
  for (const auto& [name, values] : full) {
    const DType wire = wire_dtype.value_or(values.dtype());
    auto it = std::find_if(open.begin(), open.end(), [&](const Open& bucket) { return bucket.wire == wire; });
    if (it == open.end()) it = open.insert(open.end(), {wire, {}, 0});
    it->names.push_back(name);
    it->bytes += static_cast<std::int64_t>(values.count() * size_of(wire));
    if (communication_size > 0 && it->bytes < communication_size) continue;
    buckets.emplace_back(layout, std::move(it->names), wire);
    open.erase(it);
  }
  for (Open& rest : open) buckets.emplace_back(layout, std::move(rest.names), rest.wire);
  return buckets;
}

ShardMover::ShardMover(Group group, std::optional<Group> dp_group, Stream stream)
    : group_(std::move(group)), dp_group_(std::move(dp_group)), stream_(stream) {}

void ShardMover::divide(TensorView sum) const {
  const int ranks = group_.size() * (dp_group_ ? dp_group_->size() : 1);
  GroupAccess::kernels(group_).divide(sum.dtype())(sum.data(), sum.count(), ranks);
}

void ShardMover::lend(ShardBucket& bucket) {
  if (spare_.empty()) return;
  bucket.lend_memory(std::move(spare_.back()));
  spare_.pop_back();
}

Work ShardMover::start_reduce(ShardBucket& bucket, const Tree& full) {
  lend(bucket);
  const simd::FloatEnvironment environment;
  bucket.pack_full(full, GroupAccess::kernels(group_));
  if (bucket.wire_dtype() == DType::f16) divide(bucket.packed());
  return group_.reduce_scatter_v_async(ReduceOp::sum, bucket.packed(), bucket.reduced(group_.rank()), bucket.counts(), {.stream = stream_});
}

void ShardMover::finish_reduce(ShardBucket& bucket, const Tree& shards) {
  const simd::FloatEnvironment environment;
  const simd::Kernels& kernels = GroupAccess::kernels(group_);
  const TensorView reduced = bucket.reduced(group_.rank());
  // Between the two sums, as MLX does; f16, whose sums overflow, before both.
  if (bucket.wire_dtype() != DType::f16) divide(reduced);
  if (dp_group_) dp_group_->all_sum(reduced, {.stream = stream_});
  bucket.unpack_reduced(shards, kernels);
  take_back(bucket);
}

Work ShardMover::start_gather(ShardBucket& bucket, const Tree& shards) {
  lend(bucket);
  const simd::FloatEnvironment environment;
  bucket.pack_shards(shards, group_.rank(), GroupAccess::kernels(group_));
  return group_.all_gather_v_async(bucket.part(group_.rank()), bucket.packed(), bucket.counts(), {.stream = stream_});
}

void ShardMover::finish_gather(ShardBucket& bucket, const Tree& full) {
  const simd::FloatEnvironment environment;
  bucket.unpack_full(full, GroupAccess::kernels(group_));
  take_back(bucket);
}

template <class Start, class Finish>
void ShardMover::in_turns(std::vector<ShardBucket>& buckets, Start start, Finish finish) {
  std::deque<Work> under_way;
  std::size_t finished = 0;
  const auto finish_first = [&] {
    under_way.front().wait();
    under_way.pop_front();
    finish(buckets[finished++]);
  };
  for (ShardBucket& bucket : buckets) {
    if (under_way.size() == kInFlight) finish_first();
    under_way.push_back(start(bucket));
  }
  while (!under_way.empty()) finish_first();
}

void ShardMover::reduce(std::vector<ShardBucket>& buckets, const Tree& full, const Tree& shards) {
  in_turns(
      buckets, [&](ShardBucket& bucket) { return start_reduce(bucket, full); },
      [&](ShardBucket& bucket) { finish_reduce(bucket, shards); });
}

void ShardMover::gather(std::vector<ShardBucket>& buckets, const Tree& shards, const Tree& full) {
  in_turns(
      buckets, [&](ShardBucket& bucket) { return start_gather(bucket, shards); },
      [&](ShardBucket& bucket) { finish_gather(bucket, full); });
}

}  // namespace ringlet::native
