#include <ringlet/tensor.hpp>

namespace ringlet {

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
