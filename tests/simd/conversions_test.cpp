// Tests the casts of every target where rounding is hardest: all values of the 16-bit formats, and those near every rounding boundary.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "simd/kernels.hpp"
#include "tests/simd/reference.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr DType kHalves[] = {DType::f16, DType::bf16};

Bytes all_halves() {
  Bytes values(65'536 * 2);
  for (std::size_t i = 0; i < 65'536; ++i) set_element(values, i, static_cast<std::uint16_t>(i));
  return values;
}

double decode_as(DType dtype, std::size_t bits) {
  const auto half = static_cast<std::uint16_t>(bits);
  return dtype == DType::f16 ? decode(Float16{half}) : decode(BFloat16{half});
}

/// Returns in T every value of the format, the middles between neighbours, and the numbers of T just beside those.
template <class T>
Bytes boundaries(DType half) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const std::size_t finite = half == DType::f16 ? 0x7c00 : 0x7f80;
  std::vector<T> values;
  for (std::size_t i = 0; i < finite; ++i) {
    const double low = decode_as(half, i);
    const double high = i + 1 == finite ? 2 * low - decode_as(half, i - 1) : decode_as(half, i + 1);
    const T exact = static_cast<T>(low), middle = static_cast<T>(low + (high - low) / 2);
    for (T value : {exact, std::nextafter(exact, kInfinity), std::nextafter(middle, T{0}), middle, std::nextafter(middle, kInfinity)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

void check_cast(const simd::Kernels& kernels, DType from, DType to, const Bytes& in) {
  const std::size_t count = in.size() / size_of(from);
  Bytes out(count * size_of(to));
  kernels.cast(from, to)(out.data(), in.data(), count);
  INFO(kernels.name() << ": " << name_of(from) << " to " << name_of(to));
  const std::size_t wrong = first_difference(to, out, reference_cast(from, to, in));
  CAPTURE(wrong);
  CHECK(wrong == count);
}

}  // namespace

TEST_CASE("all 65,536 values of f16 and bf16 convert as their formats say") {
  const Bytes halves = all_halves();
  for (const simd::Kernels* kernels : simd::available()) {
    for (DType half : kHalves) {
      for (DType to : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
        if (to != half) check_cast(*kernels, half, to, halves);
      }
      Bytes wide(65'536 * 4), back(65'536 * 2);
      kernels->cast(half, DType::f32)(wide.data(), halves.data(), 65'536);
      kernels->cast(DType::f32, half)(back.data(), wide.data(), 65'536);
      CHECK(first_difference(half, back, halves) == 65'536);
    }
  }
}

TEST_CASE("f32 rounds to f16 and bf16 at every boundary, to nearest even") {
  for (DType half : kHalves) {
    const Bytes in = boundaries<float>(half);
    for (const simd::Kernels* kernels : simd::available()) check_cast(*kernels, DType::f32, half, in);
  }
}

TEST_CASE("f64 rounds once: its neighbours of every boundary fall on their own side") {
  for (DType half : kHalves) {
    const Bytes in = boundaries<double>(half);
    for (const simd::Kernels* kernels : simd::available()) check_cast(*kernels, DType::f64, half, in);
  }
}

TEST_CASE("f64 far outside the range of f32 rounds to zero or infinity") {
  Bytes in;
  for (double value : {5e-324, 1e-300, 0x1p-150, 0x1.8p-150, 0x1p-149, 0x1p-134, 0x1.1p-134, 0x1p-25, 0x1.0000001p-25, 0x1p127, 0x1.fep127,
                       0x1.ff7fffp127, 0x1.ffp127, 0x1.fffffep127, 0x1.ffffffp127, 0x1p128, 1e300, 65519.999, 65520.0}) {
    for (double number : {value, -value}) {
      in.resize(in.size() + sizeof number);
      set_element(in, in.size() / sizeof number - 1, number);
    }
  }
  for (const simd::Kernels* kernels : simd::available()) {
    for (DType to : {DType::f16, DType::bf16, DType::f32}) check_cast(*kernels, DType::f64, to, in);
  }
}
