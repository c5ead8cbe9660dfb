#include "core/gradients/wire_format.hpp"

#include <algorithm>
#include <array>

#include "core/base/bytes.hpp"
#include "core/base/flat.hpp"
#include "core/gradients/weight.hpp"

namespace ringlet {

using simd::kPieceElements;

namespace {

using F32Piece = std::array<std::byte, kPieceElements * sizeof(float)>;
/// A piece of any real dtype.
using RealPiece = std::array<std::byte, kPieceElements * sizeof(double)>;

/// Writes the `count` elements of a real tensor from `first` on as f32.
void read_piece(ConstTensorView values, std::size_t first, std::size_t count, std::byte* out, const simd::Kernels& kernels) {
  const std::size_t element = size_of(values.dtype());
  const auto cast = kernels.cast(values.dtype(), DType::f32);
  if (values.contiguous()) return cast(out, values.data() + first * element, count);
  alignas(64) RealPiece gathered;
  gather(values, first * element, Bytes(gathered).first(count * element));
  cast(out, gathered.data(), count);
}

/// The other way round.
void write_piece(const std::byte* in, TensorView values, std::size_t first, std::size_t count, const simd::Kernels& kernels) {
  const std::size_t element = size_of(values.dtype());
  const auto cast = kernels.cast(DType::f32, values.dtype());
  if (values.contiguous()) return cast(values.data() + first * element, in, count);
  alignas(64) RealPiece gathered;
  cast(gathered.data(), in, count);
  scatter(ConstBytes(gathered).first(count * element), values, first * element);
}

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
  if (values.dtype() == DType::f32 && values.contiguous() && factor == 1.0 && feedback.left == nullptr)
    return encode(out, values.data(), count);
  const WireFormat wire_format{DType::f32, format};
  alignas(64) F32Piece piece_values;
  for (std::size_t done = 0; done < count; done += kPieceElements) {
    const std::size_t piece = std::min(kPieceElements, count - done);
    std::byte* blocks = out + wire_format.bytes(done);
    if (factor != 0) read_piece(values, done, piece, piece_values.data(), kernels);
    weigh(piece_values.data(), DType::f32, piece, factor, kernels);
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
  if (values.dtype() == DType::f32 && values.contiguous()) return decode(values.data(), in, values.count());
  const WireFormat wire_format{DType::f32, format};
  alignas(64) F32Piece decoded;
  for (std::size_t done = 0; done < values.count(); done += kPieceElements) {
    const std::size_t piece = std::min(kPieceElements, values.count() - done);
    decode(decoded.data(), in + wire_format.bytes(done), piece);
    write_piece(decoded.data(), values, done, piece, kernels);
  }
}

}  // namespace ringlet
