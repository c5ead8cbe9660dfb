#include <ringlet/error.hpp>
#include <ringlet/tensor.hpp>

namespace ringlet {

Shape::Shape(std::span<const std::int64_t> extents) : axes_(extents.size()) {
  if (axes_ > kMaxAxes)
    throw InvalidArgument(
        {Errc::invalid_argument, "a shape of " + std::to_string(axes_) + " axes; at most " + std::to_string(kMaxAxes) + " are possible"});
  for (std::size_t axis = 0; axis < axes_; ++axis) {
    if (extents[axis] < 0)
      throw InvalidArgument({Errc::invalid_argument, "axis " + std::to_string(axis) + " of a shape has the extent " +
                                                         std::to_string(extents[axis]) + "; it cannot be negative"});
    extents_[axis] = extents[axis];
  }
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
