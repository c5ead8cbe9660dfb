#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ringlet/tensor.hpp>
#include <ringlet/wire.hpp>

#include "simd/kernels.hpp"

namespace ringlet {

/// The most bytes of a bucket of blocks. Encoding takes a processor longer than a copy, and a slow network still longer than that. So such
/// buckets are small enough that one is encoded and another one decoded while a third is moved.
inline constexpr std::int64_t kMostBlockBytes = 2 << 20;

/// How a tensor's elements are written for the network: in a dtype or in blocks.
struct WireFormat {
  DType dtype = DType::f32;
  std::optional<BlockFormat> blocks{};  // of f32; `dtype` is not used then

  /// The bytes of a tensor with `count` elements. Each tensor begins with a block of its own.
  std::size_t bytes(std::size_t count) const { return units(count) * unit_bytes(); }
  /// Tensors may be cut at multiples of this number of elements.
  std::size_t granule() const { return blocks ? block_elements(*blocks) : 1; }
  /// The blocks, or elements, of a tensor with `count` elements, and the bytes of one.
  ///@{
  std::size_t units(std::size_t count) const { return (count + granule() - 1) / granule(); }
  std::size_t unit_bytes() const { return blocks ? block_bytes(*blocks) : size_of(dtype); }
  ///@}
  /// The bytes at which a bucket is closed where `wanted` are; 0 or less where each tensor has a bucket of its own.
  std::int64_t bucket_bytes(std::int64_t wanted) const { return blocks ? std::min(wanted, kMostBlockBytes) : wanted; }

  friend bool operator==(const WireFormat&, const WireFormat&) = default;
};

/// How a gradient crosses the network where `wire` is wanted; without one it does in its own dtype. A complex one always does.
WireFormat wire_format_of(const TensorView& gradient, const std::optional<Wire>& wire);
/// The wire among `ranks` ranks: one that is alone rounds nothing to blocks.
std::optional<Wire> wire_among(int ranks, const std::optional<Wire>& wire);

/// Whether such a wire leaves residuals.
inline bool has_feedback(const std::optional<Wire>& wire) { return wire && wire->options().feedback; }

/// What a packed tensor's residuals are (residuals.hpp), one per element; null without error feedback.
struct Feedback {
  const float* add = nullptr;  // to the values before they are rounded
  float* left = nullptr;       // gets what rounding leaves out
};

/// Encodes `values`, of a real dtype, multiplied by `factor`; where that is 0 they may be anything.
void write_blocks(BlockFormat format, ConstTensorView values, std::byte* out, double factor, const simd::Kernels& kernels,
                  const Feedback& feedback);
/// Decodes as many elements as `values` has, which is of a real dtype.
void read_blocks(BlockFormat format, const std::byte* in, TensorView values, const simd::Kernels& kernels);

}  // namespace ringlet
