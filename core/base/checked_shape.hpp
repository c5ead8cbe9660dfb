#pragma once

#include <cstdint>
#include <ringlet/tensor.hpp>
#include <span>

#include "core/base/result.hpp"

namespace ringlet {

/// Makes a shape of these extents; `invalid_argument` where the shape's constructor would throw.
Result<Shape> checked_shape(std::span<const std::int64_t> extents);

}  // namespace ringlet
