#include <fmt/format.h>

#include <ringlet/tensor_parallel.hpp>

#include "core/base/refuse.hpp"

namespace ringlet {

namespace {

/// A view of `count` indices of an axis, from `first` on.
template <bool kConst>
BasicTensorView<kConst> slice(const BasicTensorView<kConst>& tensor, std::size_t axis, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> extents(tensor.shape().extents().begin(), tensor.shape().extents().end()), strides;
  for (std::size_t a = 0; a < extents.size(); ++a) strides.push_back(tensor.stride(a));
  extents[axis] = count;
  const std::int64_t offset = first * strides[axis] * static_cast<std::int64_t>(size_of(tensor.dtype()));
  return {tensor.data() + offset, tensor.dtype(), Shape(std::span<const std::int64_t>(extents)), strides};
}

}  // namespace

Tensor shard_axis(const Group& group, ConstTensorView full, std::size_t axis, std::span<const std::int64_t> segments) {
  if (axis >= full.shape().axes()) refuse(fmt::format("shard_axis: axis {} of a tensor of shape {}", axis, to_string(full.shape())));
  const std::int64_t extent = full.shape()[axis];
  const std::vector<std::int64_t> parts = segments.empty() ? std::vector{extent} : std::vector(segments.begin(), segments.end());
  std::int64_t rest = extent;
  for (const std::int64_t part : parts) {
    if (part < 0 || part % group.size() != 0)
      refuse(fmt::format("shard_axis: {} of axis {} do not divide by {} ranks", part, axis, group.size()));
    if (part > rest) refuse(fmt::format("shard_axis: the segments add up to more than the {} of axis {}", extent, axis));
    rest -= part;
  }
  if (rest != 0) refuse(fmt::format("shard_axis: the segments add up to {}, but axis {} has {}", extent - rest, axis, extent));
  std::vector<std::int64_t> extents(full.shape().extents().begin(), full.shape().extents().end());
  extents[axis] = extent / group.size();
  Tensor shard(full.dtype(), Shape(std::span<const std::int64_t>(extents)));
  std::int64_t from = 0, to = 0;
  for (const std::int64_t part : parts) {
    const std::int64_t own = part / group.size();
    copy(slice(full, axis, from + group.rank() * own, own), slice(shard.view(), axis, to, own));
    from += part;
    to += own;
  }
  return shard;
}

}  // namespace ringlet
