#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ringlet/dtype.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ringlet {

/// The extents of a tensor, outermost axis first, at most eight. A shape without axes is a scalar's: one element.
class Shape {
 public:
  static constexpr std::size_t kMaxAxes = 8;  ///< The fixed maximum lets a shape store its extents without allocating.

  /// The shape of a scalar.
  constexpr Shape() = default;
  /// Throws `InvalidArgument` for more than eight axes or a negative extent.
  ///@{
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents);
  ///@}

  /// The number of axes, 0 for a scalar.
  std::size_t axes() const noexcept { return axes_; }
  /// The extent of an axis, whose number is below axes().
  std::int64_t operator[](std::size_t axis) const noexcept { return extents_[axis]; }
  /// The extents of all axes; valid as long as the shape is.
  std::span<const std::int64_t> extents() const noexcept { return {extents_.data(), axes_}; }
  /// The number of elements: the product of the extents, 1 for a scalar.
  std::size_t count() const noexcept;
  /// Compares the extents of all axes.
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxAxes> extents_{};
  std::size_t axes_ = 0;
};

/// The extents as text: "(3, 4)", or "()" for a scalar.
std::string to_string(const Shape& shape);

/// A view of elements in memory that the caller owns, read-only if `kConst`. They are row-major without gaps or, if strides are given, at
/// any regular spacing. A view is cheap to copy and never owns memory. It needs no more alignment than the element type needs in the
/// caller's own code. Group's calls and gradients also take views with gaps: they are packed into a buffer once, and results are written
/// back from it.
template <bool kConst>
class BasicTensorView {
 public:
  /// The type that data() points to: bytes that may or may not be written.
  using Byte = std::conditional_t<kConst, const std::byte, std::byte>;
  /// The type of memory that a view is made from: it may or may not be written.
  using Void = std::conditional_t<kConst, const void, void>;

  /// A view without elements: f32 of shape (0,).
  constexpr BasicTensorView() = default;
  /// A row-major view without gaps. It checks nothing; the call that is given the view does.
  BasicTensorView(Void* data, DType dtype, Shape shape) : data_(static_cast<Byte*>(data)), dtype_(dtype), shape_(shape) {}
  /// A view with one axis of `count` elements.
  BasicTensorView(Void* data, DType dtype, std::size_t count) : BasicTensorView(data, dtype, Shape{static_cast<std::int64_t>(count)}) {}
  /// A view with strides: the number of elements (not bytes) from one index of an axis to the next, one per axis, possibly negative. `data`
  /// is the element whose indexes are all 0. Throws `InvalidArgument` if the number of strides is not that of the axes, or if elements of a
  /// writable view may share memory.
  BasicTensorView(Void* data, DType dtype, Shape shape, std::span<const std::int64_t> strides) : BasicTensorView(data, dtype, shape) {
    set_strides(strides);
  }

  /// A view with one axis: all elements of a vector or a span, with their dtype. It is valid as long as the vector's or span's memory is.
  ///@{
  template <Element T>
  BasicTensorView(std::vector<T>& values)
    requires(!std::same_as<T, bool>)
      : BasicTensorView(values.data(), dtype_of<T>, values.size()) {}
  template <Element T>
  BasicTensorView(const std::vector<T>& values)
    requires(kConst && !std::same_as<T, bool>)
      : BasicTensorView(values.data(), dtype_of<T>, values.size()) {}
  template <class T, std::size_t kExtent>
  BasicTensorView(std::span<T, kExtent> values)
    requires(Element<std::remove_const_t<T>> && (kConst || !std::is_const_v<T>))
      : BasicTensorView(values.data(), dtype_of<std::remove_const_t<T>>, values.size()) {}
  ///@}
  /// A writable view converts to a read-only one.
  template <bool kOther>
  BasicTensorView(const BasicTensorView<kOther>& other)
    requires(kConst && !kOther)
      : data_(other.data_), dtype_(other.dtype_), shape_(other.shape_), strides_(other.strides_), contiguous_(other.contiguous_) {}

  /// The address of the element whose indexes are all 0.
  Byte* data() const noexcept { return data_; }
  /// The dtype of the elements.
  DType dtype() const noexcept { return dtype_; }
  /// The extents, outermost axis first.
  const Shape& shape() const noexcept { return shape_; }
  /// The number of elements.
  std::size_t count() const noexcept { return shape_.count(); }
  /// The bytes of the elements, without gaps. `dtype` must be valid.
  std::size_t bytes() const noexcept { return count() * size_of(dtype_); }
  /// Whether the view is row-major without gaps.
  bool contiguous() const noexcept { return contiguous_; }
  /// The number of elements from one index of the axis to the next.
  std::int64_t stride(std::size_t axis) const noexcept { return contiguous_ ? row_major_stride(axis) : strides_[axis]; }
  /// Whether elements may share memory: whether a stride does not lead past all elements of the axes with smaller strides.
  bool elements_may_overlap() const noexcept;

 private:
  template <bool kOther>
  friend class BasicTensorView;
  void set_strides(std::span<const std::int64_t> strides);
  std::int64_t row_major_stride(std::size_t axis) const noexcept;

  Byte* data_ = nullptr;
  DType dtype_ = DType::f32;
  Shape shape_{0};
  std::array<std::int64_t, Shape::kMaxAxes> strides_{};  // used only if contiguous_ is false
  bool contiguous_ = true;
};

/// A view whose elements may be written.
using TensorView = BasicTensorView<false>;
/// A view whose elements are only read. A TensorView converts to it.
using ConstTensorView = BasicTensorView<true>;
extern template class BasicTensorView<false>;
extern template class BasicTensorView<true>;

/// Dtype and shape as text: "f32 (3, 4)".
std::string describe(ConstTensorView view);

/// A tensor that owns its elements: row-major without gaps, aligned to 64 bytes. Movable; only `copy_of` copies. Two threads may read one
/// tensor at the same time.
class Tensor {
 public:
  /// A tensor without elements: f32 of shape (0,).
  Tensor() = default;
  /// A tensor of zeros. Throws `InvalidArgument` for an unknown dtype or a shape whose number of bytes overflows, and `std::bad_alloc` if
  /// memory is short.
  Tensor(DType dtype, const Shape& shape);
  /// A packed copy with the same shape, dtype and elements. `values` is borrowed during the call only. Throws as the constructor does.
  static Tensor copy_of(ConstTensorView values);

  /// The properties of its view.
  ///@{
  DType dtype() const noexcept { return view_.dtype(); }
  const Shape& shape() const noexcept { return view_.shape(); }
  std::size_t count() const noexcept { return view_.count(); }
  std::size_t bytes() const noexcept { return view_.bytes(); }
  ///@}
  /// A view of all elements; valid until the tensor is moved from, assigned to or destroyed.
  ///@{
  TensorView view() noexcept { return view_; }
  ConstTensorView view() const noexcept { return view_; }
  operator TensorView() noexcept { return view_; }
  operator ConstTensorView() const noexcept { return view_; }
  ///@}
  /// The elements as a span of `T`, valid as long as view() is. Throws `InvalidArgument` if the dtype is another.
  ///@{
  template <Element T>
  std::span<T> values() {
    check_dtype(dtype_of<T>);
    return {reinterpret_cast<T*>(view_.data()), count()};
  }
  template <Element T>
  std::span<const T> values() const {
    check_dtype(dtype_of<T>);
    return {reinterpret_cast<const T*>(view_.data()), count()};
  }
  ///@}

  /// A tensor that was moved from has no elements.
  ///@{
  Tensor(Tensor&& other) noexcept : memory_(std::move(other.memory_)), view_(std::exchange(other.view_, {})) {}
  Tensor& operator=(Tensor&& other) noexcept {
    memory_ = std::move(other.memory_);
    view_ = std::exchange(other.view_, {});
    return *this;
  }
  ///@}

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  void check_dtype(DType wanted) const;

  std::unique_ptr<std::byte, Free> memory_;
  TensorView view_;
};

/// Copies the elements of `from` into `to`, which must not overlap it. Throws `InvalidArgument` if dtype or shape differ.
void copy(ConstTensorView from, TensorView to);

}  // namespace ringlet
