#pragma once

#include <array>
#include <ringlet/tensor.hpp>

#include "simd/kernels.hpp"

namespace ringlet {

/// One parameter's part in a step. All tensors have the same shape and real dtypes, which may differ. The tensors of `state` that the rule
/// uses have no gaps.
struct LeafUpdate {
  TensorView parameter;
  ConstTensorView gradient;
  std::array<TensorView, 2> state;
};

/// Computes in f64 if any of the tensors is f64, else in f32. Tensors of other dtypes are converted block by block, so that only views with
/// gaps need additional memory.
void update_leaf(const LeafUpdate& leaf, simd::UpdateRule rule, const simd::UpdateCoefficients& coefficients, const simd::Kernels& kernels);

}  // namespace ringlet
