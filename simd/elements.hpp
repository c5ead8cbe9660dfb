#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ringlet/dtype.hpp>
#include <type_traits>

// Everything that target units include has internal linkage: each unit is compiled with its own instruction set's flags, and the
// linker must never let another unit use a function from it.
namespace ringlet::simd {
namespace {

/// A boolean as it lies in memory, where any non-zero byte is true (a C++ bool may hold only 0 or 1).
struct Boolean {
  std::uint8_t byte;
};

/// complex64 without std::complex, whose member functions are inline functions that units would share.
struct Complex {
  float real;
  float imag;
};

template <class... T>
struct TypeList {};

/// The element types in the order of DType's numbers.
using Elements = TypeList<Boolean, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t, std::int16_t, std::int32_t,
                          std::int64_t, Float16, BFloat16, float, double, Complex>;

/// The binary format of a real floating-point type: its bits, and the patterns of positive infinity and of the canonical NaN.
template <class T>
struct Format;
template <>
struct Format<Float16> {
  using Bits = std::uint16_t;
  using Signed = std::int16_t;
  using Arithmetic = float;
  static constexpr Bits kInfinity = 0x7c00, kQuietNan = 0x7e00;
};
template <>
struct Format<BFloat16> {
  using Bits = std::uint16_t;
  using Signed = std::int16_t;
  using Arithmetic = float;
  static constexpr Bits kInfinity = 0x7f80, kQuietNan = 0x7fc0;
};
template <>
struct Format<float> {
  using Bits = std::uint32_t;
  using Signed = std::int32_t;
  using Arithmetic = float;
  static constexpr Bits kInfinity = 0x7f80'0000, kQuietNan = 0x7fc0'0000;
};
template <>
struct Format<double> {
  using Bits = std::uint64_t;
  using Signed = std::int64_t;
  using Arithmetic = double;
  static constexpr Bits kInfinity = 0x7ff0'0000'0000'0000, kQuietNan = 0x7ff8'0000'0000'0000;
};

template <class T>
concept Real = requires {
  Format<T>::kInfinity;
};
template <class T>
concept ComplexNumber = std::same_as<T, Complex>;
template <class T>
concept Floating = Real<T> || ComplexNumber<T>;

/// The sign bit cleared.
template <Real T>
inline typename Format<T>::Bits magnitude_of(typename Format<T>::Bits bits) {
  using Bits = typename Format<T>::Bits;
  return bits & static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
}

/// Copies the bytes of a value into another type of the same size (std::bit_cast is missing from one of our compilers).
template <class To, class From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <class T>
inline T load(const std::byte* from, std::size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof value);
  return value;
}

template <class T>
inline void store(std::byte* to, std::size_t index, T value) {
  std::memcpy(to + index * sizeof(T), &value, sizeof value);
}

}  // namespace
}  // namespace ringlet::simd

/// Before a loop whose iterations touch no memory in common, although an output may be one of the inputs: lets the compiler vectorise it
/// without a run-time test for overlap, which would fail in place.
#if defined(__clang__)
#define RINGLET_INDEPENDENT_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define RINGLET_INDEPENDENT_LOOP _Pragma("GCC ivdep")
#endif
