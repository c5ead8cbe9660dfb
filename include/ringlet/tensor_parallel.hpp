#pragma once

#include <cstdint>
#include <ringlet/group.hpp>
#include <ringlet/tensor.hpp>
#include <span>

namespace ringlet {

/// The two collectives of tensor-parallel layers (MLX's sharded linear layers; f and g in Shoeybi et al. 2019, "Megatron-LM"), each with
/// its gradient. A pair of layers between them needs one all-reduce in each direction. Both are values; calls are as Group's.
///
/// Enters layers whose weights are split along the output: every rank has the same input.
class AllToSharded {
 public:
  /// Of the ranks that share the layers.
  explicit AllToSharded(Group group, Stream stream = {}) : group_(std::move(group)), stream_(stream) {}
  /// The input as it is.
  void forward(TensorView) const noexcept {}
  /// Each rank has the gradient of the input through its own outputs; in place it becomes their sum, the same bits on every rank.
  void backward(TensorView input_gradient) { group_.all_sum(input_gradient, {.stream = stream_}); }
  /// As `backward`, while the weights' gradients are computed. `input_gradient` is borrowed until the work has ended.
  [[nodiscard]] Work backward_async(TensorView input_gradient) {
    return group_.all_reduce_async(ReduceOp::sum, input_gradient, input_gradient, {.stream = stream_});
  }

 private:
  Group group_;
  Stream stream_;
};

/// Leaves layers whose weights are split along the input: each rank has a part of the sum that every output is.
class ShardedToAll {
 public:
  /// Of the ranks that share the layers.
  explicit ShardedToAll(Group group, Stream stream = {}) : group_(std::move(group)), stream_(stream) {}
  /// In place, the sum over all ranks, the same bits on every one. A bias is added after it, once.
  void forward(TensorView partial_output) { group_.all_sum(partial_output, {.stream = stream_}); }
  /// As `forward`, while this rank computes. `partial_output` is borrowed until the work has ended.
  [[nodiscard]] Work forward_async(TensorView partial_output) {
    return group_.all_reduce_async(ReduceOp::sum, partial_output, partial_output, {.stream = stream_});
  }
  /// The gradient of the output as it is: every rank has it whole.
  void backward(TensorView) const noexcept {}

 private:
  Group group_;
  Stream stream_;
};

/// This rank's part of a weight or bias for a sharded layer: along `axis` (the outputs for AllToSharded, the inputs for ShardedToAll) each
/// segment is cut into equal parts, one per rank, and the rank's parts are put side by side, packed. `segments`: the extents of what was
/// fused into one matrix and must be cut apart (queries, keys and values, say), adding up to the axis' extent; none: the whole axis.
/// Throws `InvalidArgument` where a segment does not divide by the group's size, or the segments are not the axis'.
Tensor shard_axis(const Group& group, ConstTensorView full, std::size_t axis, std::span<const std::int64_t> segments = {});

}  // namespace ringlet
