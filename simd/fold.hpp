#pragma once

#include "simd/combine.hpp"
#include "simd/lanes.hpp"

// Kernels that fold an array into one number.
namespace ringlet::simd {
namespace {

/// Element i belongs to partial sum i mod kFoldLanes, whatever the width of the registers, so the sum's bits do not depend on that width.
inline constexpr std::size_t kFoldLanes = 16;

/// The partial sums of one fold, in registers.
template <class Arch>
class PartialSums {
 public:
  void add_squares(const double* values) {
    for (std::size_t r = 0; r < kRegisters; ++r) {
      const Lanes lanes = read(values + r * kWidth);
      sums_[r] = sums_[r] + lanes * lanes;
    }
  }
  double total() const {
    double sums[kFoldLanes];
    for (std::size_t r = 0; r < kRegisters; ++r) std::memcpy(sums + r * kWidth, &sums_[r], sizeof(Lanes));
    for (std::size_t half = kFoldLanes / 2; half != 0; half /= 2) {
      for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    }
    return sums[0];
  }

 private:
  template <class A>
  struct LanesOf {
    using Type = xsimd::batch<double, A>;
  };
  template <std::same_as<Scalar> A>
  struct LanesOf<A> {
    using Type = double;
  };
  using Lanes = typename LanesOf<Arch>::Type;
  static constexpr std::size_t kWidth = sizeof(Lanes) / sizeof(double);
  static constexpr std::size_t kRegisters = kFoldLanes / kWidth;

  static Lanes read(const double* values) {
    if constexpr (std::same_as<Lanes, double>)
      return *values;
    else
      return Lanes::load_unaligned(values);
  }
  static Lanes zero() { return Lanes(0.0); }

  Lanes sums_[kRegisters];

 public:
  PartialSums() {
    for (Lanes& sum : sums_) sum = zero();
  }
};

template <class Arch, Floating T>
double sum_of_squares(const std::byte* data, std::size_t count) {
  if constexpr (ComplexNumber<T>) {
    return sum_of_squares<Arch, typename T::Part>(data, 2 * count);
  } else {
    constexpr std::size_t kBlock = 16 * kFoldLanes;
    alignas(64) double block[kBlock];
    PartialSums<Arch> sums;
    for (std::size_t start = 0; start < count; start += kBlock) {
      const std::size_t filled = count - start < kBlock ? count - start : kBlock;
      const std::byte* from = data + start * sizeof(T);
      for (std::size_t i = 0; i < filled; ++i) block[i] = widen(load<T>(from, i));
      std::size_t padded = filled;
      // No partial sum is ever -0, so adding 0 does not change it.
      for (; padded % kFoldLanes != 0; ++padded) block[padded] = 0;
      for (std::size_t i = 0; i < padded; i += kFoldLanes) sums.add_squares(block + i);
    }
    return sums.total();
  }
}

/// Magnitudes have the same order as their bits, with every NaN above infinity, so this is an integer maximum, whose result does not depend
/// on the order.
template <class Arch, Real T>
double abs_max(const std::byte* data, std::size_t count) {
  using Bits = typename Format<T>::Bits;
  Bits largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Bits magnitude = magnitude_of<T>(load<Bits>(data, i));
    largest = largest < magnitude ? magnitude : largest;
  }
  return widen(bits_as<T>(largest));
}

}  // namespace
}  // namespace ringlet::simd
