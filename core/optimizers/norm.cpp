#include "core/optimizers/norm.hpp"

#include <ringlet/optimizers.hpp>

#include "core/optimizers/checks.hpp"
#include "simd/kernels.hpp"

namespace ringlet {

namespace {

// All targets give the same bits.
const simd::Kernels& kernels() { return *simd::available().back(); }

void check_dtypes(const Tree& tree) {
  for (const auto& [name, values] : tree)
    if (kernels().sum_of_squares(values.dtype()) == nullptr)
      refuse("clip_grad_norm: the gradient '" + name + "' is " + std::string(name_of(values.dtype())) +
             "; it must be f16, bf16, f32, f64 or complex64");
}

}  // namespace

double sum_of_squares(const Tree& tree) {
  check_dtypes(tree);
  const simd::FloatEnvironment environment;
  double sum = 0;
  for (const auto& [name, values] : tree) {
    const simd::FoldFn fold = kernels().sum_of_squares(values.dtype());
    sum += values.contiguous() ? fold(values.data(), values.count()) : fold(Tensor::copy_of(values).view().data(), values.count());
  }
  return sum;
}

void check_max_norm(double max_norm) {
  if (!(max_norm >= 0)) refuse("clip_grad_norm: max_norm is " + number_text(max_norm) + "; it must not be negative");
}

void clip_to_norm(const Tree& gradients, double norm, double max_norm) {
  const simd::FloatEnvironment environment;
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return;
  for (const auto& [name, values] : gradients) {
    const simd::ScaleFn multiply = kernels().multiply(values.dtype());
    if (values.contiguous()) {
      multiply(values.data(), values.count(), factor);
    } else {
      Tensor packed = Tensor::copy_of(values);
      multiply(packed.view().data(), packed.count(), factor);
      copy(packed, values);
    }
  }
}

double clip_grad_norm(const Tree& gradients, double max_norm) {
  check_max_norm(max_norm);
  const simd::FloatEnvironment environment;
  const double norm = std::sqrt(sum_of_squares(gradients));
  clip_to_norm(gradients, norm, max_norm);
  return norm;
}

}  // namespace ringlet
