#pragma once

#include <ringlet/status.hpp>
#include <ringlet/tree.hpp>

namespace ringlet {

/// Returns `invalid_argument` if a leaf is not floating. Squares can be summed for floating dtypes only.
Status check_norm_dtypes(const Tree& tree);
/// Sums the squares of all elements in f64, leaf by leaf in order. The dtypes must have been checked.
double sum_of_squares(const Tree& tree);

/// Returns `invalid_argument` for a max_norm that is negative or NaN.
Status check_max_norm(double max_norm);

/// Scales all leaves so that a norm of `norm` becomes at most `max_norm`. The leaves may be a part of what has that norm. The dtypes must
/// have been checked.
void clip_to_norm(const Tree& gradients, double norm, double max_norm);

}  // namespace ringlet
