#include <ringlet/group.hpp>

#include "core/plan/part_layout.hpp"

// The methods of Group that make the tensor that they return.

namespace ringlet {

namespace {

Shape with_rows(const Shape& shape, std::int64_t rows) {
  std::array<std::int64_t, Shape::kMaxAxes> extents{};
  std::copy(shape.extents().begin(), shape.extents().end(), extents.begin());
  extents[0] = rows;
  return Shape(std::span<const std::int64_t>(extents.data(), std::max<std::size_t>(1, shape.axes())));
}

}  // namespace

Tensor Group::sum_scatter(ConstTensorView input, const CallOptions& options) {
  const bool scalar = input.shape().axes() == 0;
  const auto rows = scalar ? ElementRange{} : rows_of(static_cast<std::size_t>(input.shape()[0]), size(), rank());
  // A scalar cannot be scattered; the call below says so.
  Tensor part(input.dtype(), scalar ? input.shape() : with_rows(input.shape(), static_cast<std::int64_t>(rows.count())));
  sum_scatter(input, part, options);
  return part;
}

Tensor Group::all_gather(ConstTensorView input, const CallOptions& options) {
  const std::int64_t rows = input.shape().axes() == 0 ? 1 : input.shape()[0];
  if (rows > INT64_MAX / size())
    throw InvalidArgument({Errc::invalid_argument, "all_gather: " + std::to_string(size()) + " times input " + to_string(input.shape()) +
                                                       " is more than memory can hold"});
  Tensor all(input.dtype(), with_rows(input.shape(), rows * size()));
  all_gather(input, all, options);
  return all;
}

Tensor Group::recv_like(ConstTensorView like, int source, const CallOptions& options) {
  Tensor values(like.dtype(), like.shape());
  recv(values, source, options);
  return values;
}

}  // namespace ringlet
