#pragma once

#include <cstdint>

namespace ringlet {

/// Computes base^exponent by multiplications alone, so that every machine gives the same bits; pow() differs between libraries.
inline double power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace ringlet
