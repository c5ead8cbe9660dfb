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

ShardBucket::ShardBucket(const ShardLayout& layout, std::vector<std::string> names, const WireFormat& wire_format)
    : wire_format_(wire_format), names_(std::move(names)) {
  std::size_t next = 0;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    firsts_.push_back(static_cast<std::int64_t>(next));
    for (const std::string& name : names_) {
      pieces_.push_back({next, layout.rows(name, rank)});
      next += wire_format_.units(layout.shard_shape(name, rank).count());
    }
    counts_.push_back(static_cast<std::int64_t>(next) - firsts_.back());
  }
}

Bytes ShardBucket::packed_bytes() {
  const std::size_t bytes = packed_units() * wire_format_.unit_bytes();
  if (memory_.packed.size() < bytes) memory_.packed.resize(bytes);
  return {memory_.packed.data(), bytes};
}

TensorView ShardBucket::packed() { return {packed_bytes().data(), wire_format_.dtype, packed_units()}; }

TensorView ShardBucket::part(int rank) {
  const auto r = static_cast<std::size_t>(rank);
  const std::size_t offset = static_cast<std::size_t>(firsts_[r]) * wire_format_.unit_bytes();
  return {packed_bytes().data() + offset, wire_format_.dtype, Shape{counts_[r]}};
}

TensorView ShardBucket::reduced(int rank) {
  const std::size_t count = static_cast<std::size_t>(counts_[static_cast<std::size_t>(rank)]) * wire_format_.granule();
  const std::size_t bytes = count * size_of(wire_format_.dtype);
  if (memory_.reduced.size() < bytes) memory_.reduced.resize(bytes);
  return {memory_.reduced.data(), wire_format_.dtype, count};
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

void ShardBucket::pack_full_in_blocks(const Tree& full, double factor, Residuals* residuals, const simd::Kernels& kernels) {
  std::byte* const packed = packed_bytes().data();
  for (std::size_t tensor = 0; tensor < names_.size(); ++tensor) {
    const std::size_t number = full.index_of(names_[tensor]);
    const TensorView& values = full[number].values;
    Residuals::Pair* const pair = residuals == nullptr ? nullptr : &residuals->at(number, values.count());
    std::size_t done = 0;
    for (int rank = 0; rank < static_cast<int>(counts_.size()); ++rank) {
      const TensorView rows = rows_of(values, piece(tensor, rank).rows);
      const Feedback feedback = pair == nullptr ? Feedback() : Feedback{pair->committed.data() + done, pair->next.data() + done};
      std::byte* const out = packed + piece(tensor, rank).first * wire_format_.unit_bytes();
      write_blocks(*wire_format_.blocks, rows, out, factor, kernels, feedback);
      done += rows.count();
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
  const DType dtype = wire_format_.dtype;
  const TensorView all(memory_.reduced.data(), dtype, memory_.reduced.size() / size_of(dtype));
  std::size_t next = 0;
  for (const std::string& name : names_) {
    const TensorView& values = shards.at(name);
    convert(shaped(all, next, values), values, kernels);
    next += wire_format_.units(values.count()) * wire_format_.granule();
  }
}

Bytes ShardBucket::pack_reduced_in_blocks(int rank, std::size_t number, Residuals* residuals, const simd::Kernels& kernels) {
  const TensorView values = reduced(rank);
  Feedback feedback;
  left_.clear();
  if (residuals != nullptr) {
    Residuals::Pair& pair = residuals->at(number, values.count());
    feedback = {pair.committed.data(), pair.next.data()};
    left_.add_place(0, values.count(), feedback.left);
  }
  // What was packed has been reduced, so that its memory is free; it has room for this rank's part.
  const Bytes blocks = packed_bytes().first(wire_format_.bytes(values.count()));
  write_blocks(*wire_format_.blocks, values, blocks.data(), 1, kernels, feedback);
  return blocks;
}

}  // namespace ringlet
