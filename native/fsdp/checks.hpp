#pragma once

#include <optional>
#include <ringlet/dtype.hpp>
#include <ringlet/tree.hpp>
#include <string_view>

namespace ringlet::native {

/// These throw `InvalidArgument`, naming `what` and the value that does not fit.
/// f16, bf16, f32 or f64.
void check_real_dtype(std::string_view what, std::optional<DType> dtype);
/// Every tensor is of f16, bf16, f32, f64, or, where nothing is cast, complex64, and none is null.
void check_gradients(const Tree& gradients, bool cast);
/// The same names, order and shapes; dtypes may differ.
void check_same_shapes(const Tree& gradients, const Tree& parameters);

}  // namespace ringlet::native
