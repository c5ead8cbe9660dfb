#pragma once

#include <string>

#include "core/base/refuse.hpp"
#include "core/base/result.hpp"
#include "core/engine/requests.hpp"

namespace ringlet {

// The parts of the checks of requests. `call` is the name of the caller's function, `name` that of its argument.

/// Checks that the dtype is known, the shape is possible, and there is memory where there are elements.
Status check_view(const char* call, const char* name, ConstTensorView view);
/// Checks both views, and that their dtypes are the same.
Status check_pair(const char* call, ConstTensorView input, ConstTensorView output);
/// Checks that elements of that dtype, which is checked elsewhere, can be reduced by the operation.
Status check_op(const char* call, ReduceOp op, DType dtype);
/// Checks that the dtype, which is checked elsewhere, can hold a mean.
Status check_mean(const char* call, DType dtype);
Status check_rank(const char* call, const char* name, int rank, const WorldOptions& options);
bool overlap(ConstTensorView a, ConstTensorView b);
/// Checks that `part` is the memory of `whole` from `offset_bytes` on, or does not overlap it.
Status check_own_place(const char* call, ConstTensorView part, ConstTensorView whole, std::size_t offset_bytes);

/// The number of elements in one row of a view that has at least one axis.
std::uint64_t row_elements(ConstTensorView view);

}  // namespace ringlet
