#pragma once

#include <ringlet/sharding.hpp>
#include <ringlet/tensor.hpp>

namespace ringlet {

/// A view of some rows of a tensor, without copying. A scalar counts as one row, and its rows have one axis.
TensorView rows_of(const TensorView& tensor, RowRange rows);

}  // namespace ringlet
