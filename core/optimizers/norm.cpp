#include "core/optimizers/norm.hpp"

#include <cmath>
#include <ringlet/error.hpp>
#include <ringlet/optimizers.hpp>

#include "core/base/names_text.hpp"
#include "core/base/number_text.hpp"
#include "core/base/refuse.hpp"
#include "simd/kernels.hpp"

namespace ringlet {

namespace {

// All targets give the same bits, so any of them would do.
const simd::Kernels& kernels() { return *simd::available().back(); }

}  // namespace

Status check_norm_dtypes(const Tree& tree) {
  for (const auto& [name, values] : tree)
    if (!is_floating(values.dtype()))
      return invalid("clip_grad_norm: the gradient '" + name + "' is " + std::string(name_of(values.dtype())) + "; it must be " +
                     names_of_dtypes(is_floating, "or"));
  return {};
}

double sum_of_squares(const Tree& tree) {
  const simd::FloatEnvironment environment;
  double sum = 0;
  for (const auto& [name, values] : tree) {
    const simd::FoldFn fold = kernels().sum_of_squares(values.dtype());
    sum += values.contiguous() ? fold(values.data(), values.count()) : fold(Tensor::copy_of(values).view().data(), values.count());
  }
  return sum;
}

Status check_max_norm(double max_norm) {
  if (max_norm >= 0) return {};
  return invalid("clip_grad_norm: max_norm is " + number_text(max_norm) + "; it must not be negative");
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
  throw_if_failed(check_max_norm(max_norm));
  throw_if_failed(check_norm_dtypes(gradients));
  const simd::FloatEnvironment environment;
  const double norm = std::sqrt(sum_of_squares(gradients));
  clip_to_norm(gradients, norm, max_norm);
  return norm;
}

}  // namespace ringlet
