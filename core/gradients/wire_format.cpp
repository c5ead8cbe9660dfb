#include "core/gradients/wire_format.hpp"

#include <algorithm>
#include <array>

namespace ringlet {

namespace {
/// Casting, scaling and encoding are done in pieces of whole blocks that stay in the first-level cache.
constexpr std::size_t kElementsAtOnce = 1024;
}  // namespace

WireFormat wire_format_of(const TensorView& gradient, const std::optional<Wire>& wire) {
  if (!wire || !is_real(gradient.dtype())) return {gradient.dtype()};
  if (wire->blocks() && gradient.count() >= wire->options().least_elements) return {DType::f32, wire->blocks()};
  return {wire->dtype()};
}

std::optional<Wire> wire_among(int ranks, const std::optional<Wire>& wire) {
  return ranks == 1 && wire && wire->blocks() ? std::nullopt : wire;
}

void write_blocks(BlockFormat format, ConstTensorView values, std::byte* out, double factor, const simd::Kernels& kernels,
                  const Feedback& feedback) {
  const auto encode = kernels.encode(format);
  const std::size_t count = values.count();
  const DType dtype = values.dtype();
  if (dtype == DType::f32 && factor == 1.0 && feedback.left == nullptr) return encode(out, values.data(), count);
  const WireFormat wire_format{DType::f32, format};
  alignas(64) std::array<std::byte, kElementsAtOnce * sizeof(float)> piece_values;
  for (std::size_t done = 0; done < count; done += kElementsAtOnce) {
    const std::size_t piece = std::min(kElementsAtOnce, count - done);
    std::byte* blocks = out + wire_format.bytes(done);
    kernels.cast(dtype, DType::f32)(piece_values.data(), values.data() + done * size_of(dtype), piece);
    if (factor != 1.0) kernels.multiply(DType::f32)(piece_values.data(), piece, factor);
    if (feedback.add != nullptr) {
      const auto* add = reinterpret_cast<const std::byte*>(feedback.add + done);
      kernels.reduce(DType::f32, ReduceOp::sum)(piece_values.data(), piece_values.data(), add, piece);
    }
    encode(blocks, piece_values.data(), piece);
    if (feedback.left != nullptr)
      kernels.left_by(format)(reinterpret_cast<std::byte*>(feedback.left + done), piece_values.data(), blocks, piece);
  }
}

void read_blocks(BlockFormat format, const std::byte* in, TensorView values, const simd::Kernels& kernels) {
  const auto decode = kernels.decode(format);
  const DType dtype = values.dtype();
  if (dtype == DType::f32) return decode(values.data(), in, values.count());
  const WireFormat wire_format{DType::f32, format};
  alignas(64) std::array<std::byte, kElementsAtOnce * sizeof(float)> decoded;
  for (std::size_t done = 0; done < values.count(); done += kElementsAtOnce) {
    const std::size_t piece = std::min(kElementsAtOnce, values.count() - done);
    decode(decoded.data(), in + wire_format.bytes(done), piece);
    kernels.cast(DType::f32, dtype)(values.data() + done * size_of(dtype), decoded.data(), piece);
  }
}

}  // namespace ringlet
