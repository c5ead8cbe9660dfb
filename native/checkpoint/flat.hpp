#pragma once

#include <cstddef>
#include <ringlet/tensor.hpp>
#include <span>

namespace ringlet::native {

/// A tensor's elements as one row of bytes in row-major order, whatever gaps it has: `offset` counts in that row. Offsets and lengths are
/// multiples of the element's size and inside the tensor.
void gather(ConstTensorView from, std::size_t offset, std::span<std::byte> to);
void scatter(std::span<const std::byte> from, TensorView to, std::size_t offset);

}  // namespace ringlet::native
