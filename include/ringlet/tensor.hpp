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

/// Extents of a tensor, outermost axis first, at most eight. No axes at all is a scalar: one element.
class Shape {
 public:
  static constexpr std::size_t kMaxAxes = 8;  ///< As many as anyone uses; so a shape needs no memory of its own.

  /// A scalar's.
  constexpr Shape() = default;
  /// Throws `InvalidArgument` for more than eight axes or a negative extent.
  ///@{
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents);
  ///@}

  /// Number of axes, 0 for a scalar.
  std::size_t axes() const noexcept { return axes_; }
  /// Of an axis below axes().
  std::int64_t operator[](std::size_t axis) const noexcept { return extents_[axis]; }
  /// Of all axes; valid as long as the shape is.
  std::span<const std::int64_t> extents() const noexcept { return {extents_.data(), axes_}; }
  /// Number of elements: the product of the extents, 1 for a scalar.
  std::size_t count() const noexcept;
  /// Same axes, same extents.
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxAxes> extents_{};
  std::size_t axes_ = 0;
};

/// "(3, 4)", "()" for a scalar.
std::string to_string(const Shape& shape);

/// Elements in memory that the caller owns, `kConst`: not to be written. Row-major without gaps, or, where strides are given, any regular
/// spacing. A view is cheap to copy and never owns. Needs no alignment beyond what the element type needs in the caller's own code. Group's
/// calls and gradients take views with gaps too: they are packed into a buffer once, and results are written back from it.
template <bool kConst>
class BasicTensorView {
 public:
  /// What data() points to: bytes that may be written, or that may not.
  using Byte = std::conditional_t<kConst, const std::byte, std::byte>;
  /// What a view is made of: any memory that may be written, or that may not.
  using Void = std::conditional_t<kConst, const void, void>;

  /// No elements: f32 of shape (0,).
  constexpr BasicTensorView() = default;
  /// Row-major without gaps. Checks nothing: the call that is given the view does.
  BasicTensorView(Void* data, DType dtype, Shape shape) : data_(static_cast<Byte*>(data)), dtype_(dtype), shape_(shape) {}
  /// One axis of `count` elements.
  BasicTensorView(Void* data, DType dtype, std::size_t count) : BasicTensorView(data, dtype, Shape{static_cast<std::int64_t>(count)}) {}
  /// `strides`: elements (not bytes) from one index of an axis to the next, one per axis, perhaps negative. `data` is the element of all
  /// indexes 0. Throws `InvalidArgument` where their number is not that of the axes, or where two elements of a view that may be written
  /// would share memory because a stride is 0.
  BasicTensorView(Void* data, DType dtype, Shape shape, std::span<const std::int64_t> strides) : BasicTensorView(data, dtype, shape) {
    set_strides(strides);
  }

  /// One axis: all elements of a vector or a span, of the dtype that is theirs. Where vector or span become invalid, so does the view.
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
  /// A view that may be written is a view that may be read.
  template <bool kOther>
  BasicTensorView(const BasicTensorView<kOther>& other)
    requires(kConst && !kOther)
      : data_(other.data_), dtype_(other.dtype_), shape_(other.shape_), strides_(other.strides_), contiguous_(other.contiguous_) {}

  /// The element of all indexes 0.
  Byte* data() const noexcept { return data_; }
  /// Of each element.
  DType dtype() const noexcept { return dtype_; }
  /// Extents, outermost axis first.
  const Shape& shape() const noexcept { return shape_; }
  /// Number of elements.
  std::size_t count() const noexcept { return shape_.count(); }
  /// Of the elements, without gaps. `dtype` must be valid.
  std::size_t bytes() const noexcept { return count() * size_of(dtype_); }
  /// Row-major without gaps.
  bool contiguous() const noexcept { return contiguous_; }
  /// Elements from one index of the axis to the next.
  std::int64_t stride(std::size_t axis) const noexcept { return contiguous_ ? row_major_stride(axis) : strides_[axis]; }

 private:
  template <bool kOther>
  friend class BasicTensorView;
  void set_strides(std::span<const std::int64_t> strides);
  std::int64_t row_major_stride(std::size_t axis) const noexcept;

  Byte* data_ = nullptr;
  DType dtype_ = DType::f32;
  Shape shape_{0};
  std::array<std::int64_t, Shape::kMaxAxes> strides_{};  // where not contiguous
  bool contiguous_ = true;
};

/// Elements that may be written.
using TensorView = BasicTensorView<false>;
/// Elements that are only read. A TensorView is one, too.
using ConstTensorView = BasicTensorView<true>;
extern template class BasicTensorView<false>;
extern template class BasicTensorView<true>;

/// "f32 (3, 4)".
std::string describe(ConstTensorView view);

/// Elements that it owns: row-major without gaps, aligned to 64 bytes. Movable; copies are made by `copy_of` only. Two threads may read
/// one at the same time.
class Tensor {
 public:
  /// Nothing: f32 of shape (0,).
  Tensor() = default;
  /// All zero. Throws `InvalidArgument` for an unknown dtype or a shape whose bytes cannot be counted, `std::bad_alloc` where memory is
  /// short.
  Tensor(DType dtype, const Shape& shape);
  /// The same shape, dtype and elements, packed. `values` is borrowed for the call alone. Throws as the constructor does.
  static Tensor copy_of(ConstTensorView values);

  /// As its view's.
  ///@{
  DType dtype() const noexcept { return view_.dtype(); }
  const Shape& shape() const noexcept { return view_.shape(); }
  std::size_t count() const noexcept { return view_.count(); }
  std::size_t bytes() const noexcept { return view_.bytes(); }
  ///@}
  /// All elements; valid until the tensor is moved from, assigned to, or gone.
  ///@{
  TensorView view() noexcept { return view_; }
  ConstTensorView view() const noexcept { return view_; }
  operator TensorView() noexcept { return view_; }
  operator ConstTensorView() const noexcept { return view_; }
  ///@}
  /// The elements as `T`s, valid as view() is. Throws `InvalidArgument` where the dtype is another.
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

  /// What is moved from is left with nothing.
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

/// Copies the elements of `from` into `to`. Throws `InvalidArgument` where dtype or shape differ. They do not overlap.
void copy(ConstTensorView from, TensorView to);

}  // namespace ringlet
