#pragma once

#include <ringlet/detail/language.hpp>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace ringlet {

/// IEEE 754 binary16, as its bits. Arithmetic on it is done in f32 and rounded once (nearest, ties to even).
struct Float16 {
  std::uint16_t bits;  ///< sign, 5 bits of exponent, 10 of fraction
  /// Of the bits: -0 is not +0, and a NaN equals itself.
  friend bool operator==(const Float16&, const Float16&) = default;
};

/// bfloat16: the upper half of an f32, as its bits.
struct BFloat16 {
  std::uint16_t bits;  ///< sign, 8 bits of exponent, 7 of fraction
  /// As Float16's.
  friend bool operator==(const BFloat16&, const BFloat16&) = default;
};

/// Two f32: real, imaginary.
using Complex64 = std::complex<float>;

/// Element type of a tensor. The numbers are part of the wire format and of the C API: append only.
enum class DType : std::uint8_t {
  boolean = 0,     ///< bool: one byte; zero is false, all else true; results are 0 or 1
  u8 = 1,          ///< std::uint8_t
  u16 = 2,         ///< std::uint16_t
  u32 = 3,         ///< std::uint32_t
  u64 = 4,         ///< std::uint64_t
  i8 = 5,          ///< std::int8_t
  i16 = 6,         ///< std::int16_t
  i32 = 7,         ///< std::int32_t
  i64 = 8,         ///< std::int64_t
  f16 = 9,         ///< Float16
  bf16 = 10,       ///< BFloat16
  f32 = 11,        ///< float
  f64 = 12,        ///< double
  complex64 = 13,  ///< Complex64
};

/// Dtypes are numbered from 0 to one below this.
inline constexpr std::size_t kDTypeCount = 14;

/// How two elements are reduced. Integer sums and products wrap. max and min give NaN where either is NaN, hold -0 < +0, and
/// order complex numbers by real, then imaginary part.
/// The numbers are part of the wire format: append only.
enum class ReduceOp : std::uint8_t {
  sum = 0,   ///< OR of booleans
  prod = 1,  ///< AND of booleans
  max = 2,   ///< OR of booleans
  min = 3,   ///< AND of booleans
};

/// Operations are numbered from 0 to one below this.
inline constexpr std::size_t kReduceOpCount = 4;

namespace detail {
struct DTypeFacts {
  std::string_view name;
  std::size_t bytes;
};
inline constexpr std::array<DTypeFacts, kDTypeCount> kDTypeFacts{{{"bool", 1},
                                                                  {"u8", 1},
                                                                  {"u16", 2},
                                                                  {"u32", 4},
                                                                  {"u64", 8},
                                                                  {"i8", 1},
                                                                  {"i16", 2},
                                                                  {"i32", 4},
                                                                  {"i64", 8},
                                                                  {"f16", 2},
                                                                  {"bf16", 2},
                                                                  {"f32", 4},
                                                                  {"f64", 8},
                                                                  {"complex64", 8}}};
inline constexpr std::array<std::string_view, kReduceOpCount> kReduceOpNames{"sum", "prod", "max", "min"};

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<bool> : std::integral_constant<DType, DType::boolean> {};
template <>
struct DTypeOf<std::uint8_t> : std::integral_constant<DType, DType::u8> {};
template <>
struct DTypeOf<std::uint16_t> : std::integral_constant<DType, DType::u16> {};
template <>
struct DTypeOf<std::uint32_t> : std::integral_constant<DType, DType::u32> {};
template <>
struct DTypeOf<std::uint64_t> : std::integral_constant<DType, DType::u64> {};
template <>
struct DTypeOf<std::int8_t> : std::integral_constant<DType, DType::i8> {};
template <>
struct DTypeOf<std::int16_t> : std::integral_constant<DType, DType::i16> {};
template <>
struct DTypeOf<std::int32_t> : std::integral_constant<DType, DType::i32> {};
template <>
struct DTypeOf<std::int64_t> : std::integral_constant<DType, DType::i64> {};
template <>
struct DTypeOf<Float16> : std::integral_constant<DType, DType::f16> {};
template <>
struct DTypeOf<BFloat16> : std::integral_constant<DType, DType::bf16> {};
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::f32> {};
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::f64> {};
template <>
struct DTypeOf<Complex64> : std::integral_constant<DType, DType::complex64> {};
}  // namespace detail

/// A C++ type that is an element type of tensors.
template <class T>
concept Element = requires {
  detail::DTypeOf<T>::value;
};

/// The dtype of elements of type T.
template <Element T>
inline constexpr DType dtype_of = detail::DTypeOf<T>::value;

/// Whether `value` names a dtype or an operation; a number from outside (the wire, C) is asked this before anything else.
///@{
constexpr bool is_valid(DType value) noexcept { return static_cast<std::size_t>(value) < kDTypeCount; }
constexpr bool is_valid(ReduceOp value) noexcept { return static_cast<std::size_t>(value) < kReduceOpCount; }
///@}

/// Bytes of one element; `dtype` must be valid.
constexpr std::size_t size_of(DType dtype) noexcept { return detail::kDTypeFacts[static_cast<std::size_t>(dtype)].bytes; }

/// f16, bf16, f32, f64 or complex64.
constexpr bool is_floating(DType dtype) noexcept { return dtype >= DType::f16 && dtype <= DType::complex64; }

/// "f32", "bool", "sum", ...; "unknown" where the value is not valid.
///@{
constexpr std::string_view name_of(DType dtype) noexcept {
  return is_valid(dtype) ? detail::kDTypeFacts[static_cast<std::size_t>(dtype)].name : std::string_view("unknown");
}
constexpr std::string_view name_of(ReduceOp op) noexcept {
  return is_valid(op) ? detail::kReduceOpNames[static_cast<std::size_t>(op)] : std::string_view("unknown");
}
///@}

/// The dtype that name_of calls so; nothing where there is none.
constexpr std::optional<DType> find_dtype(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kDTypeCount; ++i)
    if (detail::kDTypeFacts[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace ringlet
