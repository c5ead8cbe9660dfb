#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ringlet/dtype.hpp>
#include <type_traits>

// Everything that the target units include has internal linkage: each unit is compiled with its own instruction set's flags, and the linker
// must never let one unit use another unit's function.
namespace ringlet::simd {
namespace {

/// A boolean as it is in memory, where any non-zero byte means true (a C++ bool may hold only 0 or 1).
struct Boolean {
  std::uint8_t byte;
};

/// A complex number without std::complex, whose member functions are inline functions that the units would share.
template <class P>
struct Complex {
  using Part = P;
  P real;
  P imag;
};

template <class... T>
struct TypeList {};

/// The type with which kernels compute on elements of type T.
template <class T>
struct KernelType {
  using Type = T;
};
template <>
struct KernelType<bool> {
  using Type = Boolean;
};
template <class P>
struct KernelType<std::complex<P>> {
  using Type = Complex<P>;
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
concept ComplexNumber = requires { typename T::Part; };
template <class T>
concept Floating = Real<T> || ComplexNumber<T>;

/// Checks that each type's kind and size are those of its dtype's row: a dtype without a Format would silently have no kernels.
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

/// Returns the bits without the sign.
template <Real T>
inline typename Format<T>::Bits magnitude_of(typename Format<T>::Bits bits) {
  using Bits = typename Format<T>::Bits;
  return bits & static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
}

/// Copies the bytes of a value into another type of the same size (one of the supported compilers lacks std::bit_cast).
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

/// Placed before a loop whose iterations share no memory, although an output may be one of the inputs. It lets the compiler vectorise the
/// loop without a run-time test for overlap, which would fail for in-place calls.
#if defined(__clang__)
#define RINGLET_INDEPENDENT_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define RINGLET_INDEPENDENT_LOOP _Pragma("GCC ivdep")
#endif

/// The same before loops of rare operations. In WebAssembly, where each kernel counts in the size of the package, they are kept short.
#if defined(__EMSCRIPTEN__)
#define RINGLET_RARE_LOOP _Pragma("clang loop vectorize(disable) interleave(disable) unroll(disable)")
#else
#define RINGLET_RARE_LOOP RINGLET_INDEPENDENT_LOOP
#endif

/// The same before loops over one block, which are vectorised but not written out iteration by iteration: for the size in WebAssembly, and
/// where they are short also because GCC would do so instead of vectorising them.
#if defined(__EMSCRIPTEN__)
#define RINGLET_BLOCK_LOOP _Pragma("clang loop vectorize(assume_safety) interleave(disable) unroll(disable)")
#define RINGLET_SHORT_LOOP RINGLET_BLOCK_LOOP
#elif defined(__clang__)
#define RINGLET_BLOCK_LOOP RINGLET_INDEPENDENT_LOOP
#define RINGLET_SHORT_LOOP RINGLET_INDEPENDENT_LOOP
#else
#define RINGLET_BLOCK_LOOP RINGLET_INDEPENDENT_LOOP
#define RINGLET_SHORT_LOOP _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#endif
