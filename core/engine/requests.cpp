#include "core/engine/requests.hpp"

#include <cmath>
#include <functional>
#include <string>

#include "core/base/arithmetic.hpp"
#include "core/plan/chunk_layout.hpp"

namespace ringlet {

namespace {

Status invalid(std::string text) { return {Errc::invalid_argument, std::move(text)}; }

std::string describe_view(ConstTensorView view) { return std::string(name_of(view.dtype())) + " " + to_string(view.shape()); }

Status check_view(const char* call, const char* name, ConstTensorView view) {
  const std::string where = std::string(call) + ": " + name;
  if (!is_valid(view.dtype())) return invalid(where + " has the unknown dtype number " + std::to_string(static_cast<int>(view.dtype())));
  if (!checked_bytes(view.shape().extents(), size_of(view.dtype())))
    return invalid(where + " has the impossible shape " + to_string(view.shape()));
  if (view.data() == nullptr && view.count() > 0) return invalid(where + " is null but has " + std::to_string(view.count()) + " elements");
  return {};
}

bool overlaps(ConstTensorView a, ConstTensorView b) {
  if (a.bytes() == 0 || b.bytes() == 0) return false;
  const std::less<const std::byte*> before;
  return before(a.data(), b.data() + b.bytes()) && before(b.data(), a.data() + a.bytes());
}

Status check_pair(const char* call, ConstTensorView input, ConstTensorView output) {
  if (Status status = check_view(call, "input", input); !status.ok()) return status;
  if (Status status = check_view(call, "output", output); !status.ok()) return status;
  if (input.dtype() != output.dtype())
    return invalid(std::string(call) + ": input is " + describe_view(input) + " but output is " + describe_view(output) +
                   "; both need the same dtype");
  return {};
}

Status check_op(const char* call, ReduceOp op) {
  if (!is_valid(op)) return invalid(std::string(call) + ": unknown operation number " + std::to_string(static_cast<int>(op)));
  return {};
}

Status check_rank(const char* call, const char* name, int rank, const WorldOptions& options) {
  if (rank >= 0 && rank < options.size) return {};
  return invalid(std::string(call) + ": " + name + " is rank " + std::to_string(rank) + ", but the group has ranks 0 to " +
                 std::to_string(options.size - 1));
}

Bytes bytes_of(TensorView view) { return {view.data(), view.bytes()}; }
ConstBytes bytes_of(ConstTensorView view) { return {view.data(), view.bytes()}; }

CollectiveTask make_task(Call call, ConstTensorView input, TensorView output, const WorldOptions& options) {
  call.dtype = input.dtype();
  call.algorithm = choose_algorithm(call.kind, call.kind == CollectiveKind::all_gather ? bytes_of(output).size() : call.bytes(),
                                    options.size, options.limits);
  return {call, bytes_of(input), bytes_of(output), options.operation_timeout, {}};
}

}  // namespace

Result<CollectiveTask> make_all_reduce(ReduceOp op, ConstTensorView input, TensorView output, double divisor, const WorldOptions& options) {
  constexpr const char* kCall = "all_reduce";
  if (Status status = check_op(kCall, op); !status.ok()) return status;
  if (Status status = check_pair(kCall, input, output); !status.ok()) return status;
  if (input.count() != output.count())
    return invalid("all_reduce: input has " + std::to_string(input.count()) + " elements but output has " + std::to_string(output.count()));
  if (input.data() != output.data() && overlaps(input, output))
    return invalid("all_reduce: input and output overlap; they must be the same memory or apart");
  if (!std::isfinite(divisor) || divisor == 0.0)
    return invalid("all_reduce: the divisor is " + std::to_string(divisor) + "; it must be finite and not 0");
  if (divisor != 1.0 && op != ReduceOp::sum) return invalid("all_reduce: only a sum can be divided, not " + std::string(name_of(op)));
  if (divisor != 1.0 && !is_floating(input.dtype()))
    return invalid("a mean of " + std::string(name_of(input.dtype())) + " cannot be held in it; cast to a floating dtype first");
  Call call;
  call.kind = CollectiveKind::all_reduce;
  call.op = op;
  call.rows = input.count();
  call.dtype = input.dtype();
  call.divisor = divisor;
  return make_task(call, input, output, options);
}

Result<CollectiveTask> make_reduce_scatter(ReduceOp op, ConstTensorView input, TensorView output, const WorldOptions& options) {
  constexpr const char* kCall = "reduce_scatter";
  if (Status status = check_op(kCall, op); !status.ok()) return status;
  if (op == ReduceOp::prod) return invalid("reduce_scatter: prod is not offered; use sum, max or min");
  if (Status status = check_pair(kCall, input, output); !status.ok()) return status;
  if (input.shape().axes() == 0) return invalid("reduce_scatter: input is a scalar; it needs an axis 0 to scatter");
  Call call;
  call.kind = CollectiveKind::reduce_scatter;
  call.op = op;
  call.rows = static_cast<std::uint64_t>(input.shape()[0]);
  call.row_elements = 1;
  for (std::size_t axis = 1; axis < input.shape().axes(); ++axis) call.row_elements *= static_cast<std::uint64_t>(input.shape()[axis]);
  call.dtype = input.dtype();
  const ElementRange mine = rows_of(call.rows, options.size, options.rank);
  const std::size_t expected = mine.count() * call.row_elements;
  if (output.count() != expected)
    return invalid("reduce_scatter: output has " + std::to_string(output.count()) + " elements, but rank " + std::to_string(options.rank) +
                   "'s part of " + to_string(input.shape()) + " is " + std::to_string(mine.count()) + " rows, " + std::to_string(expected) +
                   " elements");
  if (overlaps(input, output)) return invalid("reduce_scatter: input and output overlap; they must be apart");
  return make_task(call, input, output, options);
}

Result<CollectiveTask> make_all_gather(ConstTensorView input, TensorView output, const WorldOptions& options) {
  if (Status status = check_pair("all_gather", input, output); !status.ok()) return status;
  const auto size = static_cast<std::size_t>(options.size);
  if (output.count() != input.count() * size)
    return invalid("all_gather: output has " + std::to_string(output.count()) + " elements; " + std::to_string(size) + " ranks of " +
                   std::to_string(input.count()) + " need " + std::to_string(input.count() * size));
  const bool in_own_place = input.bytes() > 0 && input.data() == output.data() + static_cast<std::size_t>(options.rank) * input.bytes();
  if (!in_own_place && overlaps(input, output)) return invalid("all_gather: input overlaps output, and is not this rank's own part of it");
  Call call;
  call.kind = CollectiveKind::all_gather;
  call.rows = input.count();
  call.dtype = input.dtype();
  return make_task(call, input, output, options);
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

CollectiveTask make_barrier(const WorldOptions& options) {
  Call call;
  call.kind = CollectiveKind::barrier;
  return {call, {}, {}, options.operation_timeout, {}};
}

Result<MessageTask> make_send(ConstTensorView values, int destination, const WorldOptions& options) {
  if (Status status = check_view("send", "values", values); !status.ok()) return status;
  if (Status status = check_rank("send", "destination", destination, options); !status.ok()) return status;
  if (destination == options.rank) return invalid("send: rank " + std::to_string(destination) + " is this rank itself");
  return MessageTask{destination, {values.dtype(), values.shape()}, bytes_of(values), {}, options.operation_timeout, {}};
}

Result<MessageTask> make_receive(TensorView values, int source, const WorldOptions& options) {
  if (Status status = check_view("recv", "values", values); !status.ok()) return status;
  if (Status status = check_rank("recv", "source", source, options); !status.ok()) return status;
  if (source == options.rank) return invalid("recv: rank " + std::to_string(source) + " is this rank itself");
  return MessageTask{source, {values.dtype(), values.shape()}, {}, bytes_of(values), options.operation_timeout, {}};
}

}  // namespace ringlet
