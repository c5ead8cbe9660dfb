#include "core/sharding/shard_bucket.hpp"

#include "core/sharding/rows.hpp"

namespace ringlet {

namespace {

void convert(ConstTensorView from, TensorView to, const simd::Kernels& kernels) {
  if (from.count() == 0) return;
  if (from.dtype() == to.dtype()) return copy(from, to);
  if (!from.contiguous()) {
    const Tensor gathered = Tensor::copy_of(from);
    return convert(gathered, to, kernels);
  }
  if (!to.contiguous()) {
    Tensor narrowed(to.dtype(), to.shape());
    convert(from, narrowed, kernels);
    return copy(narrowed, to);
  }
  kernels.cast(from.dtype(), to.dtype())(to.data(), from.data(), from.count());
}

/// A view of the packed elements from `first` on, in the shape of `like`.
TensorView shaped(const TensorView& packed, std::size_t first, const TensorView& like) {
  return {packed.data() + first * size_of(packed.dtype()), packed.dtype(), like.shape()};
}

}  // namespace

ShardBucket::ShardBucket(const ShardLayout& layout, std::vector<std::string> names, DType wire_dtype)
    : wire_dtype_(wire_dtype), names_(std::move(names)) {
  std::size_t next = 0;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    firsts_.push_back(static_cast<std::int64_t>(next));
    for (const std::string& name : names_) {
      pieces_.push_back({next, layout.rows(name, rank)});
      next += layout.shard_shape(name, rank).count();
    }
    counts_.push_back(static_cast<std::int64_t>(next) - firsts_.back());
  }
}

TensorView ShardBucket::packed() {
  const auto count = static_cast<std::size_t>(firsts_.back() + counts_.back());
  if (memory_.packed.size() < count * size_of(wire_dtype_)) memory_.packed.resize(count * size_of(wire_dtype_));
  return {memory_.packed.data(), wire_dtype_, count};
}

TensorView ShardBucket::part(int rank) {
  const auto r = static_cast<std::size_t>(rank);
  return {packed().data() + static_cast<std::size_t>(firsts_[r]) * size_of(wire_dtype_), wire_dtype_, Shape{counts_[r]}};
}

TensorView ShardBucket::reduced(int rank) {
  const auto count = static_cast<std::size_t>(counts_[static_cast<std::size_t>(rank)]);
  if (memory_.reduced.size() < count * size_of(wire_dtype_)) memory_.reduced.resize(count * size_of(wire_dtype_));
  return {memory_.reduced.data(), wire_dtype_, count};
}

void ShardBucket::pack_full(const Tree& full, const simd::Kernels& kernels) {
  const TensorView all = packed();
  for (std::size_t tensor = 0; tensor < names_.size(); ++tensor) {
    const TensorView& values = full.at(names_[tensor]);
    for (int rank = 0; rank < static_cast<int>(counts_.size()); ++rank) {
      const TensorView rows = rows_of(values, piece(tensor, rank).rows);
      convert(rows, shaped(all, piece(tensor, rank).first, rows), kernels);
    }
  }
}

void ShardBucket::pack_shards(const Tree& shards, int rank, const simd::Kernels& kernels) {
  const TensorView all = packed();
  for (std::size_t tensor = 0; tensor < names_.size(); ++tensor) {
    const TensorView& values = shards.at(names_[tensor]);
    convert(values, shaped(all, piece(tensor, rank).first, values), kernels);
  }
}

void ShardBucket::unpack_full(const Tree& full, const simd::Kernels& kernels) {
  const TensorView all = packed();
  for (std::size_t tensor = 0; tensor < names_.size(); ++tensor) {
    const TensorView& values = full.at(names_[tensor]);
    for (int rank = 0; rank < static_cast<int>(counts_.size()); ++rank) {
      const TensorView rows = rows_of(values, piece(tensor, rank).rows);
      convert(shaped(all, piece(tensor, rank).first, rows), rows, kernels);
    }
  }
}

void ShardBucket::unpack_reduced(const Tree& shards, const simd::Kernels& kernels) {
  const TensorView all(memory_.reduced.data(), wire_dtype_, memory_.reduced.size() / size_of(wire_dtype_));
  std::size_t next = 0;
  for (const std::string& name : names_) {
    const TensorView& values = shards.at(name);
    convert(shaped(all, next, values), values, kernels);
    next += values.count();
  }
}

}  // namespace ringlet
