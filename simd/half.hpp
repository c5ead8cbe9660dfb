#pragma once

#include "simd/elements.hpp"

namespace ringlet::simd {
namespace {

template <class T>
inline T select(bool condition, T yes, T no) {
  return condition ? yes : no;
}

/// The conversions of the two 16-bit formats, written once for numbers and for xsimd batches. `F` is f32, `I` a signed and `U` an unsigned
/// 32-bit integer, or batches of these. A 16-bit value is in the low half of its integer. Rounding is to nearest even.
template <class F, class I, class U>
struct HalfBits {
  /// All intermediate numbers are normal, so this is exact even if the processor flushes subnormals.
  static F widen_f16(I half) {
    constexpr int kRebias = 112 << 23;
    const I magnitude = (half & I(0x7fff)) << 13;
    const I normal = magnitude + I(kRebias);
    const I subnormal = bits_as_lanes<I>(bits_as_lanes<F>(normal + I(1 << 23)) - F(0x1p-14f));
    const I finite = select(magnitude < I(1 << 23), subnormal, normal);
    const I any = select(magnitude < I(0x0f80'0000), finite, normal + I(kRebias));
    return bits_as_lanes<F>(any | ((half & I(0x8000)) << 16));
  }

  static I narrow_f16(F value) {
    constexpr int kRebias = -(112 << 23);
    const I bits = bits_as_lanes<I>(value);
    const I magnitude = bits & I(0x7fff'ffff);
    const I normal = (magnitude + I(kRebias + 0xfff) + ((magnitude >> 13) & I(1))) >> 13;
    // Adding 0.5 puts the ten bits of the subnormal at the end of the sum; the addition itself rounds them.
    const I subnormal = bits_as_lanes<I>(bits_as_lanes<F>(magnitude) + F(0.5f)) - I(0x3f00'0000);
    const I finite = select(magnitude < I(0x3880'0000), subnormal, normal);
    const I number = select(magnitude < I(0x4780'0000), finite, I(0x7c00));
    return select(magnitude > I(0x7f80'0000), I(0x7e00), number) | ((bits >> 16) & I(0x8000));
  }

  static F widen_bf16(U half) { return bits_as_lanes<F>(half << 16); }

  /// The rounded value is in the upper half; the lower half is unspecified. `value` must not be a NaN whose bits carry over when rounded.
  static U round_bf16_number(F value) {
    const U bits = bits_as_lanes<U>(value);
    return bits + U(0x7fff) + ((bits >> 16) & U(1));
  }

  /// The same for every value, NaNs included.
  static U round_bf16(F value) {
    const F rounded = bits_as_lanes<F>(round_bf16_number(value));
    return bits_as_lanes<U>(select(value != value, bits_as_lanes<F>(U(0x7fc0'0000)), rounded));
  }

 private:
  template <class To, class From>
  static To bits_as_lanes(From from) {
    if constexpr (std::is_arithmetic_v<To>)
      return bits_as<To>(from);
    else
      return bitwise_cast<To>(from);
  }
};

using HalfNumber = HalfBits<float, std::int32_t, std::uint32_t>;

// These convert any real element to and from the type in which it is computed.
inline float widen(Float16 value) { return HalfNumber::widen_f16(value.bits); }
inline float widen(BFloat16 value) { return HalfNumber::widen_bf16(value.bits); }
inline float widen(float value) { return value; }
inline double widen(double value) { return value; }

/// Rounds to odd. A second rounding of the result to f16 or bf16 then gives the same as rounding the double directly, because these formats
/// have at least two bits fewer than f32, at both ends of their range.
inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  const std::uint32_t bits = bits_as<std::uint32_t>(nearest);
  const std::uint64_t exact_magnitude = magnitude_of<double>(bits_as<std::uint64_t>(value));
  const std::uint64_t back_magnitude = magnitude_of<double>(bits_as<std::uint64_t>(back));
  const std::uint32_t odd_neighbour = back_magnitude < exact_magnitude ? bits + 1 : bits - 1;
  const bool exact = back_magnitude == exact_magnitude || exact_magnitude > Format<double>::kInfinity;
  return bits_as<float>(exact || (bits & 1) != 0 ? bits : odd_neighbour);
}

template <Real To>
inline To narrow(float value) {
  if constexpr (std::same_as<To, Float16>)
    return {static_cast<std::uint16_t>(HalfNumber::narrow_f16(value))};
  else if constexpr (std::same_as<To, BFloat16>)
    return {static_cast<std::uint16_t>(HalfNumber::round_bf16(value) >> 16)};
  else
    return value;
}

template <Real To>
inline To narrow(double value) {
  if constexpr (std::same_as<To, double>)
    return value;
  else if constexpr (std::same_as<To, float>)
    return static_cast<float>(value);
  else
    return narrow<To>(round_to_odd(value));
}

}  // namespace
}  // namespace ringlet::simd
