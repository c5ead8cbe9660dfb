#include "core/gradients/bucket.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/check.hpp"
#include "core/gradients/weight.hpp"

namespace ringlet {

using simd::kPieceElements;

void Bucket::open(DType dtype, const WireFormat& wire_format) {
  dtype_ = dtype;
  wire_format_ = wire_format;
  entries_.clear();
  left_.clear();
  size_ = 0;
}

void Bucket::pack(TensorView values, double factor, const simd::Kernels& kernels, const Feedback& feedback) {
  RINGLET_CHECK(values.dtype() == dtype_);
  entries_.push_back({values, size_});
  size_ += wire_format_.bytes(values.count());
  if (buffer_.size() < size_) buffer_.resize(size_);
  std::byte* out = buffer_.data() + entries_.back().offset;
  if (wire_format_.blocks) {
    const std::size_t first = entries_.back().offset / wire_format_.unit_bytes() * wire_format_.granule();
    if (feedback.left != nullptr) left_.add_place(first, values.count(), feedback.left);
    return write_blocks(*wire_format_.blocks, values, out, factor, kernels, feedback);
  }
  Tensor without_gaps;
  ConstTensorView packed = values;
  if (!values.contiguous()) packed = without_gaps = Tensor::copy_of(values);
  pack_elements(packed, out, factor, kernels);
}

void Bucket::pack_elements(ConstTensorView values, std::byte* out, double factor, const simd::Kernels& kernels) const {
  const std::size_t count = values.count();
  const std::size_t element = size_of(dtype_);
  const DType wire_dtype = wire_format_.dtype;
  const std::size_t wire_element = size_of(wire_dtype);
  const std::byte* in = values.data();
  if (factor == 1.0) {
    if (dtype_ == wire_dtype) {
      if (count > 0) std::memcpy(out, in, count * element);
    } else {
      kernels.cast(dtype_, wire_dtype)(out, in, count);
    }
    return;
  }
  // Values are scaled before they are narrowed. So narrowing adds only one rounding, and a large weight cannot overflow the narrow dtype.
  alignas(64) std::array<std::byte, kPieceElements * detail::kLargestElementBytes> scaled;
  for (std::size_t done = 0; done < count; done += kPieceElements) {
    const std::size_t piece = std::min(kPieceElements, count - done);
    if (factor != 0) std::memcpy(scaled.data(), in + done * element, piece * element);
    weigh(scaled.data(), dtype_, piece, factor, kernels);
    if (dtype_ == wire_dtype)
      std::memcpy(out + done * element, scaled.data(), piece * element);
    else
      kernels.cast(dtype_, wire_dtype)(out + done * wire_element, scaled.data(), piece);
  }
}

void Bucket::unpack(const simd::Kernels& kernels) const {
  for (const auto& [values, offset] : entries_) {
    if (values.count() == 0) continue;
    if (values.contiguous() || wire_format_.blocks) {
      unpack_elements(buffer_.data() + offset, values, kernels);
    } else {
      Tensor unpacked(dtype_, values.shape());
      unpack_elements(buffer_.data() + offset, unpacked, kernels);
      copy(unpacked, values);
    }
  }
}

void Bucket::unpack_elements(const std::byte* in, TensorView values, const simd::Kernels& kernels) const {
  if (wire_format_.blocks) return read_blocks(*wire_format_.blocks, in, values, kernels);
  if (dtype_ == wire_format_.dtype)
    std::memcpy(values.data(), in, values.bytes());
  else
    kernels.cast(wire_format_.dtype, dtype_)(values.data(), in, values.count());
}

}  // namespace ringlet
