#include <algorithm>
#include <ringlet/error.hpp>
#include <ringlet/tensor.hpp>

#include "core/base/checked_shape.hpp"

namespace ringlet {

namespace {

Status check_extents(std::span<const std::int64_t> extents) {
  if (extents.size() > Shape::kMaxAxes)
    return {Errc::invalid_argument,
            "a shape of " + std::to_string(extents.size()) + " axes; at most " + std::to_string(Shape::kMaxAxes) + " are possible"};
  for (std::size_t axis = 0; axis < extents.size(); ++axis)
    if (extents[axis] < 0)
      return {Errc::invalid_argument,
              "axis " + std::to_string(axis) + " of a shape has the extent " + std::to_string(extents[axis]) + "; it cannot be negative"};
  return {};
}

}  // namespace

Result<Shape> checked_shape(std::span<const std::int64_t> extents) {
  if (Status status = check_extents(extents); !status.ok()) return status;
  return Shape(extents);
}

Shape::Shape(std::span<const std::int64_t> extents) : axes_(extents.size()) {
  throw_if_failed(check_extents(extents));
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

std::size_t Shape::count() const noexcept {
  std::size_t product = 1;
  for (const auto extent : extents()) product *= static_cast<std::size_t>(extent);
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < shape.axes(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(shape[axis]);
  }
  if (shape.axes() == 1) text += ",";
  return text + ")";
}

}  // namespace ringlet
