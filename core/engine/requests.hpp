#pragma once

#include <ringlet/tensor.hpp>
#include <span>

#include "core/base/result.hpp"
#include "core/engine/options.hpp"
#include "core/engine/tasks.hpp"

namespace ringlet {

/// These check a caller's arguments and make the task that GroupEngine::start() takes, without timeout and completion. A failure is
/// `invalid_argument` with the values that do not fit; nothing has happened then.

/// Makes the task and chooses the algorithm; all other functions end with this one. A buffer that this rank does not use is empty.
CollectiveTask make_task(Call call, ConstTensorView input, TensorView output, const WorldOptions& options);

/// The same task, which is no call of the program's own. A failure passes.
Result<CollectiveTask> for_purpose(Purpose purpose, Result<CollectiveTask> task);

/// With `divisor` 1 this is a plain reduction; otherwise the owner divides the result by it (for sums of floating dtypes only).
Result<CollectiveTask> make_all_reduce(ReduceOp op, ConstTensorView input, TensorView output, double divisor, const WorldOptions& options);
/// The mean over the group. Where a ring would round sums of f16 at each hop and might overflow, the elements are divided first, and this
/// function already writes to `output`.
Result<CollectiveTask> make_all_mean(ConstTensorView input, TensorView output, const WorldOptions& options);
/// The sum over the group of f32 that are encoded in blocks, in place. `left` is borrowed while it runs; its places are written where this
/// rank owns the part.
CollectiveTask make_all_reduce_blocks(BlockFormat format, Bytes blocks, const LeftByRounding* left, const WorldOptions& options);
Result<CollectiveTask> make_broadcast(TensorView values, int root, const WorldOptions& options);
/// `output` is used on the root alone and ignored elsewhere.
Result<CollectiveTask> make_reduce(ReduceOp op, ConstTensorView input, TensorView output, int root, const WorldOptions& options);
Result<CollectiveTask> make_reduce_mean(ConstTensorView input, TensorView output, int root, const WorldOptions& options);
CollectiveTask make_barrier(const WorldOptions& options);

/// The collectives whose buffers have a part for each rank.
Result<CollectiveTask> make_reduce_scatter(ReduceOp op, ConstTensorView input, TensorView output, const WorldOptions& options);
Result<CollectiveTask> make_mean_scatter(ConstTensorView input, TensorView output, const WorldOptions& options);
Result<CollectiveTask> make_all_gather(ConstTensorView input, TensorView output, const WorldOptions& options);
Result<CollectiveTask> make_gather(ConstTensorView input, TensorView output, int root, const WorldOptions& options);
Result<CollectiveTask> make_scatter(ConstTensorView input, TensorView output, int root, const WorldOptions& options);
Result<CollectiveTask> make_all_to_all(ConstTensorView input, TensorView output, const WorldOptions& options);

/// The number of rows (the extent of axis 0) of each rank's part.
using Counts = std::span<const std::int64_t>;
Result<CollectiveTask> make_reduce_scatter_v(ReduceOp op, ConstTensorView input, TensorView output, Counts counts,
                                             const WorldOptions& options);
Result<CollectiveTask> make_mean_scatter_v(ConstTensorView input, TensorView output, Counts counts, const WorldOptions& options);
/// The sum over the group of f32 that are encoded in blocks, of which rank r gets counts[r] blocks, decoded, in `output`. The buffers fit
/// the counts, and are apart.
CollectiveTask make_reduce_scatter_blocks(BlockFormat format, ConstBytes blocks, TensorView output, Counts counts,
                                          const WorldOptions& options);
Result<CollectiveTask> make_all_gather_v(ConstTensorView input, TensorView output, Counts counts, const WorldOptions& options);
/// The same where each rank's output has the part of the rank before it already. There are no guests.
Result<CollectiveTask> make_all_gather_of_rest(ConstTensorView input, TensorView output, Counts counts, const WorldOptions& options);
Result<CollectiveTask> make_gather_v(ConstTensorView input, TensorView output, Counts counts, int root, const WorldOptions& options);
Result<CollectiveTask> make_scatter_v(ConstTensorView input, TensorView output, Counts counts, int root, const WorldOptions& options);
Result<CollectiveTask> make_all_to_all_v(ConstTensorView input, TensorView output, Counts send_counts, Counts receive_counts,
                                         const WorldOptions& options);

/// The arguments of a collective. Each form reads only those that it has (arguments_of).
struct CollectiveArguments {
  ReduceOp op = ReduceOp::sum;
  ConstTensorView input{};
  TensorView output{};  // or the one buffer that is both
  Counts counts{};      // of the parts, or of what is sent
  Counts receive_counts{};
  int root = 0;
};
/// Makes the request of any form by the functions above.
Result<CollectiveTask> make_collective(CollectiveForm form, const CollectiveArguments& arguments, const WorldOptions& options);

Result<MessageTask> make_send(ConstTensorView values, int destination, const WorldOptions& options);
Result<MessageTask> make_receive(TensorView values, int source, const WorldOptions& options);
/// From any rank; `source` gets which it was.
Result<MessageTask> make_receive_any(TensorView values, int& source, const WorldOptions& options);

}  // namespace ringlet
