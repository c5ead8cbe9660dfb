#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ringlet/dtype.hpp>
#include <span>
#include <string>
#include <vector>

namespace ringlet {

/// Extents of a tensor, outermost axis first, at most eight. No axes at all is a scalar: one element.
class Shape {
 public:
  static constexpr std::size_t kMaxAxes = 8;

  constexpr Shape() = default;
  /// Throws `InvalidArgument` for more than eight axes or a negative extent.
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents);

  std::size_t axes() const noexcept { return axes_; }
  std::int64_t operator[](std::size_t axis) const noexcept { return extents_[axis]; }
  std::span<const std::int64_t> extents() const noexcept { return {extents_.data(), axes_}; }
  /// Number of elements.
  std::size_t count() const noexcept;
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxAxes> extents_{};
  std::size_t axes_ = 0;
};

/// "(3, 4)", "()" for a scalar.
std::string to_string(const Shape& shape);

/// Contiguous row-major elements in memory that the caller owns. A view is cheap to copy and never owns.
/// Needs no alignment beyond what the element type needs in the caller's own code.
template <bool kConst>
class BasicTensorView {
 public:
  using Byte = std::conditional_t<kConst, const std::byte, std::byte>;
  using Void = std::conditional_t<kConst, const void, void>;

  constexpr BasicTensorView() = default;
  BasicTensorView(Void* data, DType dtype, Shape shape) : data_(static_cast<Byte*>(data)), dtype_(dtype), shape_(shape) {}
  /// One axis of `count` elements.
  BasicTensorView(Void* data, DType dtype, std::size_t count) : BasicTensorView(data, dtype, Shape{static_cast<std::int64_t>(count)}) {}

  template <Element T>
  BasicTensorView(std::vector<T>& values) requires(!std::same_as<T, bool>) : BasicTensorView(values.data(), dtype_of<T>, values.size()) {}
  template <Element T>
  BasicTensorView(const std::vector<T>& values) requires(kConst && !std::same_as<T, bool>)
      : BasicTensorView(values.data(), dtype_of<T>, values.size()) {}
  template <class T, std::size_t kExtent>
  BasicTensorView(std::span<T, kExtent> values) requires(Element<std::remove_const_t<T>> && (kConst || !std::is_const_v<T>))
      : BasicTensorView(values.data(), dtype_of<std::remove_const_t<T>>, values.size()) {}
  /// A view that may be written is a view that may be read.
  template <bool kOther>
  BasicTensorView(const BasicTensorView<kOther>& other) requires(kConst && !kOther)
      : BasicTensorView(other.data(), other.dtype(), other.shape()) {}

  Byte* data() const noexcept { return data_; }
  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  std::size_t count() const noexcept { return shape_.count(); }
  /// `dtype` must be valid.
  std::size_t bytes() const noexcept { return count() * size_of(dtype_); }

 private:
  Byte* data_ = nullptr;
  DType dtype_ = DType::f32;
  Shape shape_{0};
};

using TensorView = BasicTensorView<false>;
using ConstTensorView = BasicTensorView<true>;

}  // namespace ringlet
