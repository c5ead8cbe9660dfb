#pragma once

#include <optional>
#include <ringlet/dtype.hpp>
#include <ringlet/status.hpp>
#include <ringlet/tree.hpp>
#include <ringlet/wire.hpp>
#include <span>
#include <string_view>

namespace ringlet {

// These return `invalid_argument`, naming the value that does not fit.

/// The dtype is real, or unset. `what` names the option in the error's text.
Status check_real_dtype(std::string_view what, std::optional<DType> dtype);
/// The same of a wire, where blocks are possible, too.
Status check_real_wire(std::string_view what, const std::optional<Wire>& wire);
/// Every tensor is real (or, if nothing is cast, floating), and none is null.
Status check_gradients(const Tree& gradients, bool cast);
/// Both trees have the same names, order and shapes; dtypes may differ.
Status check_same_shapes(const Tree& gradients, const Tree& parameters);
/// There are no weights, or one per rank, finite, not negative and not all 0.
Status check_shard_weights(std::span<const double> weights, int ranks);

}  // namespace ringlet
