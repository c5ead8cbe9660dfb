#include "native/fsdp/checks.hpp"

#include <fmt/format.h>

#include <ringlet/error.hpp>

namespace ringlet::native {

namespace {

[[noreturn]] void refuse(std::string text) { throw InvalidArgument({Errc::invalid_argument, std::move(text)}); }

bool is_real(DType dtype) { return is_floating(dtype) && dtype != DType::complex64; }

}  // namespace

void check_real_dtype(std::string_view what, std::optional<DType> dtype) {
  if (dtype && !is_real(*dtype)) refuse(fmt::format("{} is {}; f16, bf16, f32 and f64 are possible", what, name_of(*dtype)));
}

void check_gradients(const Tree& gradients, bool cast) {
  for (const auto& [name, values] : gradients) {
    if (!is_valid(values.dtype()) || !is_floating(values.dtype()))
      refuse(fmt::format("the gradient '{}' is {}; gradients must be floating", name, describe(values)));
    if (cast && !is_real(values.dtype()))
      refuse(fmt::format("the gradient '{}' is {}, which cannot be reduced in another dtype", name, describe(values)));
    if (values.data() == nullptr && values.count() > 0) refuse(fmt::format("the gradient '{}' is null", name));
  }
}

void check_same_shapes(const Tree& gradients, const Tree& parameters) {
  const Tree alike = gradients.map([&](const std::string& name, const TensorView& values) {
    const TensorView* parameter = parameters.find(name);
    return TensorView(values.data(), parameter != nullptr ? parameter->dtype() : values.dtype(), values.shape());
  });
  if (const std::string text = difference(alike, "the gradients", parameters, "the parameters"); !text.empty())
    refuse("gradients and parameters do not fit: " + text);
}

}  // namespace ringlet::native
