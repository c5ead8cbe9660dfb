#pragma once

#include <ringlet/tree.hpp>

namespace ringlet {

/// The squares of all elements, summed in f64, leaf by leaf in order. f16, bf16, f32, f64 or complex64, else throws `InvalidArgument`.
double sum_of_squares(const Tree& tree);

/// Throws `InvalidArgument` for a max_norm that is negative or NaN.
void check_max_norm(double max_norm);

/// Scales all leaves down to `max_norm`, given the norm of what they are a part of. Dtypes as above.
void clip_to_norm(const Tree& gradients, double norm, double max_norm);

}  // namespace ringlet
