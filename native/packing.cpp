#include "native/packing.hpp"

namespace ringlet::native {

namespace {

bool has_gaps(ConstTensorView view) { return !view.contiguous() && view.data() != nullptr && is_valid(view.dtype()); }

}  // namespace

ConstTensorView Packing::read(ConstTensorView view) {
  if (!has_gaps(view)) return view;
  return buffers_.emplace_back(Buffer{Tensor::copy_of(view), {}}).packed;
}

TensorView Packing::replace(TensorView view, bool read) {
  if (!has_gaps(view)) return view;
  return buffers_.emplace_back(Buffer{read ? Tensor::copy_of(view) : Tensor(view.dtype(), view.shape()), view}).packed;
}

void Packing::write_back() {
  for (const auto& [packed, target] : buffers_)
    if (target.data() != nullptr) copy(packed, target);
}

}  // namespace ringlet::native
