#pragma once

#include <optional>
#include <ringlet/dtype.hpp>
#include <ringlet/status.hpp>
#include <ringlet/tree.hpp>
#include <span>
#include <string_view>

namespace ringlet {

// These give `invalid_argument`, naming the value that does not fit, and `what` it is of.

/// A real dtype.
Status check_real_dtype(std::string_view what, std::optional<DType> dtype);
/// Every tensor is real or, where nothing is cast, floating, and none is null.
Status check_gradients(const Tree& gradients, bool cast);
/// The same names, order and shapes; dtypes may differ.
Status check_same_shapes(const Tree& gradients, const Tree& parameters);
/// None, or one per rank, finite, not negative, not all 0.
Status check_shard_weights(std::span<const double> weights, int ranks);

}  // namespace ringlet
