#pragma once

#include <algorithm>
#include <cstddef>
#include <ringlet/tensor.hpp>

#include "simd/kernels.hpp"

namespace ringlet {

/// Multiplies `count` elements by `factor`. Where that is 0 they become zeros whatever they were: the mean gradient of no samples is NaN.
inline void weigh(std::byte* values, DType dtype, std::size_t count, double factor, const simd::Kernels& kernels) {
  if (factor == 0)
    std::fill_n(values, count * size_of(dtype), std::byte{});
  else if (factor != 1)
    kernels.multiply(dtype)(values, count, factor);
}

}  // namespace ringlet
