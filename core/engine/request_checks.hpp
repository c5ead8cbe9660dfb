#pragma once

#include <string>

#include "core/base/refuse.hpp"
#include "core/base/result.hpp"
#include "core/engine/requests.hpp"

namespace ringlet {

// What the checks of requests are made of. `call` is the name of the caller's function, `name` of its argument.

/// A known dtype, a possible shape, memory where there are elements.
Status check_view(const char* call, const char* name, ConstTensorView view);
/// Both views, and that their dtypes are the same.
Status check_pair(const char* call, ConstTensorView input, ConstTensorView output);
Status check_op(const char* call, ReduceOp op);
Status check_rank(const char* call, const char* name, int rank, const WorldOptions& options);
bool overlap(ConstTensorView a, ConstTensorView b);
/// That `part` is the memory of `whole` from `offset_bytes` on, or apart from it.
Status check_own_place(const char* call, ConstTensorView part, ConstTensorView whole, std::size_t offset_bytes);

/// Elements of one row, of a view with at least one axis.
std::uint64_t row_elements(ConstTensorView view);

}  // namespace ringlet
