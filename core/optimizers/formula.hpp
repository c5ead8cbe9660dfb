#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "simd/kernels.hpp"

namespace ringlet::detail {

/// What one optimizer does to each element.
struct UpdateFormula {
  simd::UpdateRule rule;
  std::array<std::string_view, 2> slots;  // the state's names, as many as the rule has
  /// `step` is counted from 1.
  std::function<simd::UpdateCoefficients(double rate, std::uint64_t step)> coefficients;
  std::string name{};  // of the optimizer, for errors
};

}  // namespace ringlet::detail
