#pragma once

#include <ringlet/dtype.hpp>

#include "tests/simd/samples.hpp"

// A second implementation of what the kernels must compute: slow, one element at a time, from the definitions.
namespace ringlet::test {

/// Returns the number that the bits stand for.
double decode(Float16 value);
double decode(BFloat16 value);

/// Returns the nearest number of the format, ties to even, rounded once.
Float16 encode_f16(double value);
BFloat16 encode_bf16(double value);

Bytes reference_reduce(DType dtype, ReduceOp op, const Bytes& a, const Bytes& b);

/// Returns data / factor where `divide`, else data * factor.
Bytes reference_scale(DType dtype, bool divide, const Bytes& data, double factor);

Bytes reference_cast(DType from, DType to, const Bytes& data);

/// Sums in the order that the kernels promise: sixteen partial sums, then halves added to halves.
double reference_sum_of_squares(DType dtype, const Bytes& data);

double reference_abs_max(DType dtype, const Bytes& data);

}  // namespace ringlet::test
