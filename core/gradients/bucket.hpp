#pragma once

#include <ringlet/tensor.hpp>
#include <vector>

#include "core/base/bytes.hpp"
#include "simd/kernels.hpp"

namespace ringlet {

/// Several tensors of one dtype that are moved in one collective, perhaps in a narrower dtype. Keeps its memory from one use to the next.
class Bucket {
 public:
  /// Empties the bucket. `wire_dtype` is what moves: `dtype` itself, or a float dtype that it can be cast to.
  void open(DType dtype, DType wire_dtype);
  /// Takes `values`, which is borrowed until unpack() and may have gaps, scaled by `factor` (1: as it is). Of the
  /// bucket's dtype, which is floating.
  void pack(TensorView values, double factor, const simd::Kernels& kernels);
  /// What is moved, in place.
  TensorView packed();
  /// Writes the moved values back to where they came from.
  void unpack(const simd::Kernels& kernels) const;

  DType dtype() const { return dtype_; }
  DType wire_dtype() const { return wire_dtype_; }
  std::size_t wire_bytes() const { return size_; }

 private:
  struct Entry {
    TensorView values;
    std::size_t offset;  // in bytes, of the packed values
  };

  void pack_elements(ConstTensorView values, std::byte* out, double factor, const simd::Kernels& kernels) const;
  void unpack_elements(const std::byte* in, TensorView values, const simd::Kernels& kernels) const;

  DType dtype_ = DType::f32;
  DType wire_dtype_ = DType::f32;
  std::vector<Entry> entries_;
  std::vector<std::byte> buffer_;
  std::size_t size_ = 0;
};

}  // namespace ringlet
