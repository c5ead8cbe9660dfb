#pragma once

#include <ringlet/status.hpp>
#include <ringlet/tree.hpp>

namespace ringlet {

/// `invalid_argument` where a leaf is not floating: the others' squares can be summed.
Status check_norm_dtypes(const Tree& tree);
/// The squares of all elements, summed in f64, leaf by leaf in order. Dtypes have been checked.
double sum_of_squares(const Tree& tree);

/// `invalid_argument` for a max_norm that is negative or NaN.
Status check_max_norm(double max_norm);

/// Scales all leaves down to `max_norm`, given the norm of what they are a part of. Dtypes have been checked.
void clip_to_norm(const Tree& gradients, double norm, double max_norm);

}  // namespace ringlet
