#pragma once

#include <array>
#include <ringlet/tensor.hpp>

#include "simd/kernels.hpp"

namespace ringlet {

/// One parameter's part in a step. All have the same shape and a real floating-point dtype, not necessarily the same; what of `state` the
/// rule has stands without gaps.
struct LeafUpdate {
  TensorView parameter;
  ConstTensorView gradient;
  std::array<TensorView, 2> state;
};

/// Computes in f64 where any of the tensors is f64, else in f32; others are converted block by block on the way, so that only views with
/// gaps need memory.
void update_leaf(const LeafUpdate& leaf, simd::UpdateRule rule, const simd::UpdateCoefficients& coefficients, const simd::Kernels& kernels);

}  // namespace ringlet
