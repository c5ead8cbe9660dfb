#pragma once

#include <cstdint>
#include <ringlet/group.hpp>
#include <ringlet/tensor.hpp>
#include <span>

namespace ringlet {

/// AllToSharded and ShardedToAll are the two collectives of tensor-parallel layers (MLX's sharded linear layers; f and g in Shoeybi et al.
/// 2019, "Megatron-LM"), each with its gradient. A pair of layers between them needs one all-reduce in each direction. Both are values;
/// their calls behave as Group's.
///
/// AllToSharded stands before layers whose weights are split along the output: every rank has the same input.
class AllToSharded {
 public:
  /// `group` contains the ranks that share the layers.
  explicit AllToSharded(Group group, Stream stream = {}) : group_(std::move(group)), stream_(stream) {}
  /// Leaves the input unchanged.
  void forward(TensorView) const noexcept {}
  /// Sums the ranks' gradients of the input, in place, with the same bits on every rank. Each rank passes the gradient through its own
  /// outputs.
  void backward(TensorView input_gradient) { group_.all_sum(input_gradient, {.stream = stream_}); }
  /// Like `backward`, but runs while the weights' gradients are computed. `input_gradient` is borrowed until the work has ended.
  [[nodiscard]] Work backward_async(TensorView input_gradient) {
    return group_.all_reduce_async(ReduceOp::sum, input_gradient, input_gradient, {.stream = stream_});
  }

 private:
  Group group_;
  Stream stream_;
};

/// Stands behind layers whose weights are split along the input: every output is a sum, of which each rank has a part.
class ShardedToAll {
 public:
  /// `group` contains the ranks that share the layers.
  explicit ShardedToAll(Group group, Stream stream = {}) : group_(std::move(group)), stream_(stream) {}
  /// Sums the partial outputs over all ranks, in place, with the same bits on every rank. A bias is added afterwards, once.
  void forward(TensorView partial_output) { group_.all_sum(partial_output, {.stream = stream_}); }
  /// Like `forward`, but runs while this rank computes. `partial_output` is borrowed until the work has ended.
  [[nodiscard]] Work forward_async(TensorView partial_output) {
    return group_.all_reduce_async(ReduceOp::sum, partial_output, partial_output, {.stream = stream_});
  }
  /// Leaves the gradient of the output unchanged, since every rank has all of it.
  void backward(TensorView) const noexcept {}

 private:
  Group group_;
  Stream stream_;
};

/// Returns this rank's part of a weight or bias for a sharded layer. Each segment of `axis` (the outputs for AllToSharded, the inputs for
/// ShardedToAll) is cut into equal parts, one per rank, and this rank's parts are put side by side, packed. `segments` are the extents of
/// matrices that were fused into one and must be cut apart (queries, keys and values, for instance) and add up to the axis' extent; if
/// empty, the whole axis is one segment. Throws `InvalidArgument` if a segment does not divide evenly by the group's size, or the segments
/// do not add up to the axis' extent.
Tensor shard_axis(const Group& group, ConstTensorView full, std::size_t axis, std::span<const std::int64_t> segments = {});

}  // namespace ringlet
