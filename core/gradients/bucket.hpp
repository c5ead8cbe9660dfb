#pragma once

#include <ringlet/tensor.hpp>
#include <vector>

#include "core/base/bytes.hpp"
#include "simd/kernels.hpp"

namespace ringlet {

/// Several tensors of one dtype that one collective moves, perhaps in a narrower dtype. A bucket keeps its memory from one use to the next.
class Bucket {
 public:
  /// Empties the bucket. `wire_dtype` is the dtype that is moved: `dtype` itself, or a float dtype that it can be cast to.
  void open(DType dtype, DType wire_dtype);
  /// Adds `values`, multiplied by `factor` (1 leaves them unchanged). They are borrowed until unpack(), may have gaps, and are of the
  /// bucket's dtype, which is floating.
  void pack(TensorView values, double factor, const simd::Kernels& kernels);
  /// The values to move; the collective changes them in place.
  TensorView packed();
  /// Writes the moved values back to the tensors that they came from.
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
