#pragma once

#include <ringlet/tensor.hpp>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/engine/left_by_rounding.hpp"
#include "core/gradients/wire_format.hpp"
#include "simd/kernels.hpp"

namespace ringlet {

/// Several tensors of one dtype that one collective moves, perhaps in a narrower dtype or in blocks. A bucket keeps its memory from one use
/// to the next.
class Bucket {
 public:
  /// Empties the bucket. `wire_format` is `dtype` itself, of a float dtype that it can be cast to, or of blocks.
  void open(DType dtype, const WireFormat& wire_format);
  /// Adds `values`, multiplied by `factor` (1 leaves them unchanged). They are borrowed until unpack(), may have gaps, and are of the
  /// bucket's dtype, which is floating. `feedback` is for blocks only.
  void pack(TensorView values, double factor, const simd::Kernels& kernels, const Feedback& feedback = {});
  /// The packed values; the collective changes them in place.
  Bytes packed() { return {buffer_.data(), size_}; }
  /// Where what rounding their sum leaves is added to that of packing; null without feedback.
  const LeftByRounding* left() const { return left_.empty() ? nullptr : &left_; }
  /// Writes the moved values back to the tensors that they came from.
  void unpack(const simd::Kernels& kernels) const;

  DType dtype() const { return dtype_; }
  const WireFormat& wire_format() const { return wire_format_; }

 private:
  struct Entry {
    TensorView values;
    std::size_t offset;  // in bytes, of the packed values
  };

  void pack_elements(ConstTensorView values, std::byte* out, double factor, const simd::Kernels& kernels) const;
  void unpack_elements(const std::byte* in, TensorView values, const simd::Kernels& kernels) const;

  DType dtype_ = DType::f32;
  WireFormat wire_format_;
  std::vector<Entry> entries_;
  LeftByRounding left_;
  std::vector<std::byte> buffer_;
  std::size_t size_ = 0;
};

}  // namespace ringlet
