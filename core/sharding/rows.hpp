#pragma once

#include <ringlet/sharding.hpp>
#include <ringlet/tensor.hpp>

namespace ringlet {

/// Some rows of a tensor, where they lie. A scalar is one row, and its rows have one axis.
TensorView rows_of(const TensorView& tensor, RowRange rows);

}  // namespace ringlet
