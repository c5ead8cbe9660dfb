#include <cstring>
#include <new>
#include <ringlet/error.hpp>
#include <ringlet/tensor.hpp>

#include "core/base/arithmetic.hpp"
#include "core/base/refuse.hpp"

namespace ringlet {

namespace {

constexpr std::align_val_t kAlignment{64};

/// Visits every run of elements that are contiguous in both views: bytes of `from`, bytes of `to`, their length. Both have the same shape.
template <class Visit>
void for_each_run(ConstTensorView from, TensorView to, Visit visit) {
  const std::size_t element = size_of(from.dtype());
  const Shape& shape = from.shape();
  if (shape.count() == 0) return;
  std::size_t inner = shape.axes();  // axes from here on form one run
  std::size_t run = 1;
  while (inner > 0) {
    const auto dense = static_cast<std::int64_t>(run);
    const std::size_t axis = inner - 1;
    if (shape[axis] != 1 && (from.stride(axis) != dense || to.stride(axis) != dense)) break;
    run *= static_cast<std::size_t>(shape[axis]);
    inner = axis;
  }
  std::array<std::int64_t, Shape::kMaxAxes> index{};
  const std::byte* source = from.data();
  std::byte* target = to.data();
  for (;;) {
    visit(source, target, run * element);
    std::size_t axis = inner;
    for (; axis > 0; --axis) {
      const std::size_t a = axis - 1;
      const auto bytes = static_cast<std::int64_t>(element);
      source += from.stride(a) * bytes;
      target += to.stride(a) * bytes;
      if (++index[a] < shape[a]) break;
      source -= from.stride(a) * shape[a] * bytes;
      target -= to.stride(a) * shape[a] * bytes;
      index[a] = 0;
    }
    if (axis == 0) return;
  }
}

}  // namespace

template <bool kConst>
void BasicTensorView<kConst>::set_strides(std::span<const std::int64_t> strides) {
  if (strides.size() != shape_.axes())
    refuse(std::to_string(strides.size()) + " strides for the shape " + to_string(shape_) + "; it needs " + std::to_string(shape_.axes()));
  contiguous_ = true;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    strides_[axis] = strides[axis];
    contiguous_ &= shape_[axis] <= 1 || strides[axis] == row_major_stride(axis);
  }
  contiguous_ |= count() == 0;
  if (kConst || !elements_may_overlap()) return;
  std::string listed;
  for (const std::int64_t stride : strides) listed += (listed.empty() ? "" : ", ") + std::to_string(stride);
  refuse("a tensor of shape " + to_string(shape_) + " with strides of (" + listed +
         ") elements, of which some may share memory, cannot be written; write to a copy");
}

template <bool kConst>
bool BasicTensorView<kConst>::elements_may_overlap() const noexcept {
  if (contiguous_) return false;
  const auto step = [this](std::size_t axis) {
    const auto stride = static_cast<std::uint64_t>(strides_[axis]);
    return strides_[axis] < 0 ? 0 - stride : stride;
  };
  for (std::size_t axis = 0; axis < shape_.axes(); ++axis) {
    if (shape_[axis] <= 1) continue;
    std::uint64_t room = step(axis);  // for the way from the first element to the last one of all axes with smaller strides
    if (room == 0) return true;
    for (std::size_t inner = 0; inner < shape_.axes(); ++inner) {
      if (inner == axis || shape_[inner] <= 1 || step(inner) > step(axis)) continue;
      const auto steps = static_cast<std::uint64_t>(shape_[inner] - 1);
      if (step(inner) == 0 || steps > (room - 1) / step(inner)) return true;
      room -= steps * step(inner);
    }
  }
  return false;
}

template <bool kConst>
std::int64_t BasicTensorView<kConst>::row_major_stride(std::size_t axis) const noexcept {
  std::int64_t stride = 1;
  for (std::size_t inner = shape_.axes(); inner > axis + 1; --inner) stride *= shape_[inner - 1];
  return stride;
}

template class BasicTensorView<false>;
template class BasicTensorView<true>;

std::string describe(ConstTensorView view) { return std::string(name_of(view.dtype())) + " " + to_string(view.shape()); }

void Tensor::Free::operator()(std::byte* memory) const noexcept { ::operator delete(memory, kAlignment); }

Tensor::Tensor(DType dtype, const Shape& shape) {
  if (!is_valid(dtype)) refuse("a tensor of the unknown dtype number " + std::to_string(static_cast<int>(dtype)));
  const auto bytes = checked_bytes(shape.extents(), size_of(dtype));
  if (!bytes) refuse("a tensor of the impossible shape " + to_string(shape));
  memory_.reset(static_cast<std::byte*>(::operator new(*bytes, kAlignment)));
  std::memset(memory_.get(), 0, *bytes);
  view_ = TensorView(memory_.get(), dtype, shape);
}

Tensor Tensor::copy_of(ConstTensorView values) {
  Tensor copied(values.dtype(), values.shape());
  copy(values, copied);
  return copied;
}

void Tensor::check_dtype(DType wanted) const {
  if (dtype() != wanted) refuse("the tensor's elements are " + std::string(name_of(dtype())) + ", not " + std::string(name_of(wanted)));
}

void copy(ConstTensorView from, TensorView to) {
  if (from.dtype() != to.dtype() || !(from.shape() == to.shape()))
    refuse("copy: from " + describe(from) + " to " + describe(to) + "; both need the same dtype and shape");
  for_each_run(from, to, [](const std::byte* source, std::byte* target, std::size_t bytes) { std::memcpy(target, source, bytes); });
}

}  // namespace ringlet
