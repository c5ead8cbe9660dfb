#include "core/engine/request_checks.hpp"

#include <functional>

#include "core/base/arithmetic.hpp"

namespace ringlet {

Status check_view(const char* call, const char* name, ConstTensorView view) {
  const std::string where = std::string(call) + ": " + name;
  if (!is_valid(view.dtype())) return invalid(where + " has the unknown dtype number " + std::to_string(static_cast<int>(view.dtype())));
  if (!checked_bytes(view.shape().extents(), size_of(view.dtype())))
    return invalid(where + " has the impossible shape " + to_string(view.shape()));
  if (view.data() == nullptr && view.count() > 0) return invalid(where + " is null but has " + std::to_string(view.count()) + " elements");
  if (!view.contiguous()) return invalid(where + " has gaps between its elements; pack it first");
  return {};
}

bool overlap(ConstTensorView a, ConstTensorView b) {
  if (a.bytes() == 0 || b.bytes() == 0) return false;
  const std::less<const std::byte*> before;
  return before(a.data(), b.data() + b.bytes()) && before(b.data(), a.data() + a.bytes());
}

Status check_pair(const char* call, ConstTensorView input, ConstTensorView output) {
  if (Status status = check_view(call, "input", input); !status.ok()) return status;
  if (Status status = check_view(call, "output", output); !status.ok()) return status;
  if (input.dtype() != output.dtype())
    return invalid(std::string(call) + ": input is " + describe(input) + " but output is " + describe(output) +
                   "; both need the same dtype");
  return {};
}

Status check_op(const char* call, ReduceOp op, DType dtype) {
  if (!is_valid(op)) return invalid(std::string(call) + ": unknown operation number " + std::to_string(static_cast<int>(op)));
  if (is_valid(dtype) && !can_reduce(dtype, op))
    return invalid(std::string(call) + ": " + std::string(name_of(op)) + " of " + std::string(name_of(dtype)) +
                   ": only bool and integers can be reduced bit by bit");
  return {};
}

Status check_mean(const char* call, DType dtype) {
  if (!is_valid(dtype) || is_floating(dtype)) return {};
  return invalid(std::string(call) + ": a mean of " + std::string(name_of(dtype)) +
                 " cannot be held in it; cast to a floating dtype first");
}

Status check_rank(const char* call, const char* name, int rank, const WorldOptions& options) {
  if (rank >= 0 && rank < options.size) return {};
  return invalid(std::string(call) + ": " + name + " is rank " + std::to_string(rank) + ", but the group has ranks 0 to " +
                 std::to_string(options.size - 1));
}

Status check_own_place(const char* call, ConstTensorView part, ConstTensorView whole, std::size_t offset_bytes) {
  if (part.bytes() == 0 || part.data() == whole.data() + offset_bytes || !overlap(part, whole)) return {};
  return invalid(std::string(call) +
                 ": input and output overlap; they must be apart, or the smaller one this rank's own part of the other");
}

std::uint64_t row_elements(ConstTensorView view) {
  std::uint64_t elements = 1;
  for (std::size_t axis = 1; axis < view.shape().axes(); ++axis) elements *= static_cast<std::uint64_t>(view.shape()[axis]);
  return elements;
}

}  // namespace ringlet
