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

/// What kernels compute with where elements are of type T.
template <class T>
struct KernelType {
  using Type = T;
};
template <>
struct KernelType<bool> {
  using Type = Boolean;
};
template <>
struct KernelType<Complex64> {
  using Type = Complex;
};

template <class... T>
TypeList<typename KernelType<T>::Type...> kernel_types(const std::tuple<ringlet::detail::DTypeRow<T>...>&);
/// The element types in the order of DType's numbers.
using Elements = decltype(kernel_types(ringlet::detail::kDTypeRows));

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
concept Real = requires { Format<T>::kInfinity; };
template <class T>
concept ComplexNumber = std::same_as<T, Complex>;
template <class T>
concept Floating = Real<T> || ComplexNumber<T>;

/// Whether each type is what the dtype's row says: a dtype without its Format would silently have no kernels.
template <class... T>
constexpr bool formats_fit(TypeList<T...>) {
  constexpr bool kReal[]{Real<T>...}, kFloating[]{Floating<T>...};
  constexpr std::size_t kBytes[]{sizeof(T)...};
  for (std::size_t d = 0; d < sizeof...(T); ++d) {
    const auto dtype = static_cast<DType>(d);
    if (kReal[d] != is_real(dtype) || kFloating[d] != is_floating(dtype) || kBytes[d] != size_of(dtype)) return false;
  }
  return true;
}
static_assert(formats_fit(Elements()), "a dtype of dtype.hpp lacks its Format, or has one that it should not have");

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
