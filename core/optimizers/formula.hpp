#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "simd/kernels.hpp"

namespace ringlet::detail {

/// The formula that one optimizer applies to each element.
struct UpdateFormula {
  simd::UpdateRule rule;
  std::array<std::string_view, 2> slots;  // names of the state's tensors, as many as the rule has
  /// The rule's coefficients for a step, which is counted from 1.
  std::function<simd::UpdateCoefficients(double rate, std::uint64_t step)> coefficients;
  std::string name{};  // name of the optimizer, for errors
};

}  // namespace ringlet::detail
