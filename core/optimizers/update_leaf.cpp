#include "core/optimizers/update_leaf.hpp"

#include <algorithm>
#include <span>

namespace ringlet {

namespace {

/// Elements per block: few enough that all arrays of a block fit into the first-level cache and on a small stack.
constexpr std::size_t kBlock = 512;
constexpr std::size_t kMaxArrays = 4;

struct Array {
  std::byte* elements;
  DType dtype;
};

/// The arrays are in the order parameters, gradients, state. All but the gradients are written.
constexpr std::size_t kGradients = 1;
using Arrays = std::array<Array, kMaxArrays>;

simd::UpdateArrays update_arrays(const std::array<std::byte*, kMaxArrays>& at) { return {at[0], at[kGradients], {at[2], at[3]}}; }

void update_in_blocks(std::span<const Array> arrays, std::size_t count, DType arithmetic, simd::UpdateFn update,
                      const simd::UpdateCoefficients& coefficients, const simd::Kernels& kernels) {
  alignas(64) std::byte scratch[kMaxArrays][kBlock * sizeof(double)];
  for (std::size_t start = 0; start < count; start += kBlock) {
    const std::size_t block = std::min(kBlock, count - start);
    std::array<std::byte*, kMaxArrays> at{};
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const auto [elements, dtype] = arrays[i];
      at[i] = elements + start * size_of(dtype);
      if (dtype == arithmetic) continue;
      kernels.cast(dtype, arithmetic)(scratch[i], at[i], block);
      at[i] = scratch[i];
    }
    update(update_arrays(at), block, coefficients);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const auto [elements, dtype] = arrays[i];
      if (dtype != arithmetic && i != kGradients) kernels.cast(arithmetic, dtype)(elements + start * size_of(dtype), scratch[i], block);
    }
  }
}

void update_packed(const LeafUpdate& leaf, simd::UpdateRule rule, const simd::UpdateCoefficients& coefficients,
                   const simd::Kernels& kernels) {
  Arrays all{};
  all[0] = {leaf.parameter.data(), leaf.parameter.dtype()};
  // The kernels only read the gradients, but all elements of the array have the same, non-const type.
  all[kGradients] = {const_cast<std::byte*>(leaf.gradient.data()), leaf.gradient.dtype()};
  const std::size_t slots = simd::slots_of(rule);
  for (std::size_t slot = 0; slot < slots; ++slot) all[2 + slot] = {leaf.state[slot].data(), leaf.state[slot].dtype()};
  const std::span<const Array> arrays = std::span(all).first(2 + slots);
  const bool wide = std::any_of(arrays.begin(), arrays.end(), [](const Array& array) { return array.dtype == DType::f64; });
  const DType arithmetic = wide ? DType::f64 : DType::f32;
  const simd::UpdateFn update = kernels.update(arithmetic, rule);
  const std::size_t count = leaf.parameter.count();
  if (std::all_of(arrays.begin(), arrays.end(), [&](const Array& array) { return array.dtype == arithmetic; }))
    update(update_arrays({all[0].elements, all[1].elements, all[2].elements, all[3].elements}), count, coefficients);
  else
    update_in_blocks(arrays, count, arithmetic, update, coefficients, kernels);
}

}  // namespace

void update_leaf(const LeafUpdate& leaf, simd::UpdateRule rule, const simd::UpdateCoefficients& coefficients,
                 const simd::Kernels& kernels) {
  LeafUpdate packed = leaf;
  Tensor parameter, gradient;
  if (!leaf.parameter.contiguous()) packed.parameter = parameter = Tensor::copy_of(leaf.parameter);
  if (!leaf.gradient.contiguous()) packed.gradient = gradient = Tensor::copy_of(leaf.gradient);
  update_packed(packed, rule, coefficients, kernels);
  if (!leaf.parameter.contiguous()) copy(packed.parameter, leaf.parameter);
}

}  // namespace ringlet
