#pragma once

#include <cstddef>
#include <ringlet/tensor.hpp>
#include <span>

namespace ringlet {

/// These copy a part of a tensor, which may have gaps, as one row of bytes in row-major order. `offset` is the position in that row.
/// Offsets and lengths are multiples of the element's size and inside the tensor.
void gather(ConstTensorView from, std::size_t offset, std::span<std::byte> to);
void scatter(std::span<const std::byte> from, TensorView to, std::size_t offset);

}  // namespace ringlet
