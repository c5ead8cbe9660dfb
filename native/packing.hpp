#pragma once

#include <ringlet/tensor.hpp>
#include <vector>

namespace ringlet::native {

/// What an operation moves in place of views with gaps. Views without gaps, and ones that are refused later (null, an unknown dtype), are
/// passed through.
class Packing {
 public:
  /// The elements of `view`, packed now.
  ConstTensorView read(ConstTensorView view);
  /// Room for the elements of `view`, which write_back() puts there.
  TensorView write(TensorView view) { return replace(view, false); }
  /// Both.
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
