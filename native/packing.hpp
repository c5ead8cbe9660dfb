#pragma once

#include <ringlet/tensor.hpp>
#include <vector>

namespace ringlet::native {

/// Packed copies that an operation moves in place of views with gaps. Views without gaps, and ones that are refused later (null, an unknown
/// dtype), are passed through.
class Packing {
 public:
  /// Returns the elements of `view`, which are packed by this call.
  ConstTensorView read(ConstTensorView view);
  /// Returns room for the elements of `view`; write_back() copies them into it.
  TensorView write(TensorView view) { return replace(view, false); }
  /// Packs the elements of `view` as read() does, and write_back() copies them into it.
  TensorView update(TensorView view) { return replace(view, true); }
  void write_back();

 private:
  struct Buffer {
    Tensor packed;
    TensorView target;  // null where nothing is written back
  };
  TensorView replace(TensorView view, bool read);

  std::vector<Buffer> buffers_;
};

}  // namespace ringlet::native
