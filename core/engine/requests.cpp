#include "core/engine/requests.hpp"

#include <cmath>
#include <cstring>
#include <string>

#include "core/engine/request_checks.hpp"

namespace ringlet {

CollectiveTask make_task(Call call, ConstTensorView input, TensorView output, const WorldOptions& options) {
  const bool parts_of_one_size = call.kind == CollectiveKind::all_gather && call.counts.empty();
  const std::size_t bytes = parts_of_one_size ? call.bytes() * static_cast<std::size_t>(options.size) : call.bytes();
  call.algorithm = choose_algorithm(call, bytes, options.size, options.topology, options.limits, options.placement);
  return {std::move(call), {input.data(), input.bytes()}, {output.data(), output.bytes()}, options.operation_timeout, {}};
}

Result<CollectiveTask> for_purpose(Purpose purpose, Result<CollectiveTask> task) {
  if (task.ok()) task.value().call.purpose = purpose;
  return task;
}

Result<CollectiveTask> make_all_reduce(ReduceOp op, ConstTensorView input, TensorView output, double divisor, const WorldOptions& options) {
  constexpr const char* kCall = "all_reduce";
  if (Status status = check_op(kCall, op, input.dtype()); !status.ok()) return status;
  if (Status status = check_pair(kCall, input, output); !status.ok()) return status;
  if (input.count() != output.count())
    return invalid("all_reduce: input has " + std::to_string(input.count()) + " elements but output has " + std::to_string(output.count()));
  if (input.data() != output.data() && overlap(input, output))
    return invalid("all_reduce: input and output overlap; they must be the same memory or apart");
  if (!std::isfinite(divisor) || divisor == 0.0)
    return invalid("all_reduce: the divisor is " + std::to_string(divisor) + "; it must be finite and not 0");
  if (divisor != 1.0 && op != ReduceOp::sum) return invalid("all_reduce: only a sum can be divided, not " + std::string(name_of(op)));
  if (divisor != 1.0)
    if (Status status = check_mean(kCall, input.dtype()); !status.ok()) return status;
  Call call;
  call.kind = CollectiveKind::all_reduce;
  call.op = op;
  call.rows = input.count();
  call.dtype = input.dtype();
  call.divisor = divisor;
  return make_task(call, input, output, options);
}

Result<CollectiveTask> make_all_mean(ConstTensorView input, TensorView output, const WorldOptions& options) {
  if (Status status = check_mean("all_mean", input.dtype()); !status.ok()) return status;
  auto task = make_all_reduce(ReduceOp::sum, input, output, options.size, options);
  if (!task.ok() || !is_divided_first(input.dtype()) || !rounds_partial_sums(task.value().call.algorithm)) return task;
  if (input.data() != output.data()) std::memcpy(output.data(), input.data(), input.bytes());
  const simd::FloatEnvironment environment;
  options.kernels->divide(output.dtype())(output.data(), output.count(), options.size);
  return make_all_reduce(ReduceOp::sum, output, output, 1.0, options);
}

CollectiveTask make_all_reduce_blocks(BlockFormat format, Bytes blocks, const LeftByRounding* left, const WorldOptions& options) {
  Call call;
  call.kind = CollectiveKind::all_reduce;
  call.dtype = DType::f32;
  call.blocks = format;
  call.rows = blocks.size() / block_bytes(format);
  const TensorView bytes(blocks.data(), DType::u8, blocks.size());
  CollectiveTask task = make_task(std::move(call), bytes, bytes, options);
  task.left = left;
  return task;
}

Result<CollectiveTask> make_broadcast(TensorView values, int root, const WorldOptions& options) {
  if (Status status = check_view("broadcast", "values", values); !status.ok()) return status;
  if (Status status = check_rank("broadcast", "root", root, options); !status.ok()) return status;
  Call call;
  call.kind = CollectiveKind::broadcast;
  call.root = root;
  call.rows = values.count();
  call.dtype = values.dtype();
  return make_task(call, values, values, options);
}

namespace {

Result<CollectiveTask> reduce_to_root(const char* name, ReduceOp op, ConstTensorView input, TensorView output, int root, double divisor,
                                      const WorldOptions& options) {
  if (Status status = check_op(name, op, input.dtype()); !status.ok()) return status;
  if (Status status = check_rank(name, "root", root, options); !status.ok()) return status;
  const bool is_root = options.rank == root;
  if (Status status = is_root ? check_pair(name, input, output) : check_view(name, "input", input); !status.ok()) return status;
  if (is_root && input.count() != output.count())
    return invalid(std::string(name) + ": input has " + std::to_string(input.count()) + " elements but the root's output has " +
                   std::to_string(output.count()));
  if (is_root && input.data() != output.data() && overlap(input, output))
    return invalid(std::string(name) + ": input and output overlap; they must be the same memory or apart");
  Call call;
  call.kind = CollectiveKind::reduce;
  call.op = op;
  call.root = root;
  call.rows = input.count();
  call.dtype = input.dtype();
  call.divisor = divisor;
  return make_task(call, input, is_root ? output : TensorView(), options);
}

}  // namespace

Result<CollectiveTask> make_reduce(ReduceOp op, ConstTensorView input, TensorView output, int root, const WorldOptions& options) {
  return reduce_to_root("reduce", op, input, output, root, 1.0, options);
}

Result<CollectiveTask> make_reduce_mean(ConstTensorView input, TensorView output, int root, const WorldOptions& options) {
  constexpr const char* kCall = "reduce_mean";
  if (Status status = check_mean(kCall, input.dtype()); !status.ok()) return status;
  return reduce_to_root(kCall, ReduceOp::sum, input, output, root, options.size, options);
}

CollectiveTask make_barrier(const WorldOptions& options) {
  Call call;
  call.kind = CollectiveKind::barrier;
  if (options.topology.has_guests()) return make_task(std::move(call), {}, {}, options);
  return {call, {}, {}, options.operation_timeout, {}};
}

Result<CollectiveTask> make_collective(CollectiveForm form, const CollectiveArguments& a, const WorldOptions& options) {
  switch (form) {
    case CollectiveForm::all_reduce:
      return make_all_reduce(a.op, a.input, a.output, 1.0, options);
    case CollectiveForm::all_mean:
      return make_all_mean(a.input, a.output, options);
    case CollectiveForm::reduce_scatter:
      return make_reduce_scatter(a.op, a.input, a.output, options);
    case CollectiveForm::reduce_scatter_v:
      return make_reduce_scatter_v(a.op, a.input, a.output, a.counts, options);
    case CollectiveForm::mean_scatter:
      return make_mean_scatter(a.input, a.output, options);
    case CollectiveForm::mean_scatter_v:
      return make_mean_scatter_v(a.input, a.output, a.counts, options);
    case CollectiveForm::all_gather:
      return make_all_gather(a.input, a.output, options);
    case CollectiveForm::all_gather_v:
      return make_all_gather_v(a.input, a.output, a.counts, options);
    case CollectiveForm::broadcast:
      return make_broadcast(a.output, a.root, options);
    case CollectiveForm::barrier:
      return make_barrier(options);
    case CollectiveForm::reduce:
      return make_reduce(a.op, a.input, a.output, a.root, options);
    case CollectiveForm::reduce_mean:
      return make_reduce_mean(a.input, a.output, a.root, options);
    case CollectiveForm::gather:
      return make_gather(a.input, a.output, a.root, options);
    case CollectiveForm::gather_v:
      return make_gather_v(a.input, a.output, a.counts, a.root, options);
    case CollectiveForm::scatter:
      return make_scatter(a.input, a.output, a.root, options);
    case CollectiveForm::scatter_v:
      return make_scatter_v(a.input, a.output, a.counts, a.root, options);
    case CollectiveForm::all_to_all:
      return make_all_to_all(a.input, a.output, options);
    case CollectiveForm::all_to_all_v:
      return make_all_to_all_v(a.input, a.output, a.counts, a.receive_counts, options);
  }
  return invalid("unknown collective number " + std::to_string(static_cast<int>(form)));
}

Result<MessageTask> make_send(ConstTensorView values, int destination, const WorldOptions& options) {
  if (Status status = check_view("send", "values", values); !status.ok()) return status;
  if (Status status = check_rank("send", "destination", destination, options); !status.ok()) return status;
  if (destination == options.rank) return invalid("send: rank " + std::to_string(destination) + " is this rank itself");
  return MessageTask{destination, {values.dtype(), values.shape()}, {values.data(), values.bytes()}, {}, options.operation_timeout, {}};
}

Result<MessageTask> make_receive(TensorView values, int source, const WorldOptions& options) {
  if (Status status = check_view("recv", "values", values); !status.ok()) return status;
  if (Status status = check_rank("recv", "source", source, options); !status.ok()) return status;
  if (source == options.rank) return invalid("recv: rank " + std::to_string(source) + " is this rank itself");
  return MessageTask{source, {values.dtype(), values.shape()}, {}, {values.data(), values.bytes()}, options.operation_timeout, {}};
}

Result<MessageTask> make_receive_any(TensorView values, int& source, const WorldOptions& options) {
  if (Status status = check_view("recv_any", "values", values); !status.ok()) return status;
  if (options.size == 1) return invalid("recv_any: there is no other rank in a group of one");
  const MessageShape shape{values.dtype(), values.shape()};
  return MessageTask{kAnySource, shape, {}, {values.data(), values.bytes()}, options.operation_timeout, {}, &source};
}

}  // namespace ringlet
