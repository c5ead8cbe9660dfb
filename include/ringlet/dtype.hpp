#pragma once

#include <ringlet/detail/language.hpp>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace ringlet {

/// An IEEE 754 binary16 number, stored as its bits. Arithmetic on it is done in f32 and rounded once (to nearest, ties to even).
struct Float16 {
  std::uint16_t bits;  ///< sign, 5 bits of exponent, 10 of fraction
  /// Compares the bits: -0 differs from +0, and a NaN equals itself.
  friend bool operator==(const Float16&, const Float16&) = default;
};

/// A bfloat16 number, which is the upper half of an f32, stored as its bits.
struct BFloat16 {
  std::uint16_t bits;  ///< sign, 8 bits of exponent, 7 of fraction
  /// Compares the bits, as for Float16.
  friend bool operator==(const BFloat16&, const BFloat16&) = default;
};

/// A complex number of two f32: the real part, then the imaginary part.
using Complex64 = std::complex<float>;
/// A complex number of two f64: the real part, then the imaginary part.
using Complex128 = std::complex<double>;

/// The element type of a tensor. The numbers are part of the wire format and of the C API: append only.
enum class DType : std::uint8_t {
  boolean = 0,      ///< bool: one byte; zero is false, all else true; results are 0 or 1
  u8 = 1,           ///< std::uint8_t
  u16 = 2,          ///< std::uint16_t
  u32 = 3,          ///< std::uint32_t
  u64 = 4,          ///< std::uint64_t
  i8 = 5,           ///< std::int8_t
  i16 = 6,          ///< std::int16_t
  i32 = 7,          ///< std::int32_t
  i64 = 8,          ///< std::int64_t
  f16 = 9,          ///< Float16
  bf16 = 10,        ///< BFloat16
  f32 = 11,         ///< float
  f64 = 12,         ///< double
  complex64 = 13,   ///< Complex64
  complex128 = 14,  ///< Complex128
};

/// The kind of number that a dtype's elements are.
enum class ElementKind : std::uint8_t {
  boolean,           ///< true or false
  unsigned_integer,  ///< from 0 up
  signed_integer,    ///< two's complement
  ieee_float,        ///< binary16, binary32, binary64
  brain_float,       ///< the upper half of a binary32
  complex,           ///< two floats, each of half its size
};

/// The operation that reduces two elements to one. Integer sums and products wrap. max and min give NaN if either element is NaN, treat -0
/// as less than +0, and order complex numbers by the real part, then by the imaginary part. The bitwise operations are for booleans and
/// integers (can_reduce). The numbers are part of the wire format: append only.
enum class ReduceOp : std::uint8_t {
  sum = 0,      ///< OR of booleans
  prod = 1,     ///< AND of booleans
  max = 2,      ///< OR of booleans
  min = 3,      ///< AND of booleans
  bit_and = 4,  ///< AND of each bit, or of booleans
  bit_or = 5,   ///< OR of each bit, or of booleans
  bit_xor = 6,  ///< exclusive OR of each bit, or of booleans
};

/// The order in which collectives combine the ranks' elements. It changes sums and products of floating dtypes, which are rounded.
enum class ReduceOrder : std::uint8_t {
  any = 0,   ///< whatever is fastest: up to 256 KiB that of the ranks, above that another one for each part of the buffer
  rank = 1,  ///< that of the ranks, whatever the size: (rank 0 op rank 1) op rank 2 ...; f16 and bf16 in f32, rounded once
};

namespace detail {

/// Everything that describes one dtype. Kernels, checks, file formats and the tables of other languages are derived from these rows.
template <class T>
struct DTypeRow {
  DType dtype;
  std::string_view name;
  ElementKind kind;
  std::string_view safetensors_name;  ///< its name in safetensors files; empty where the format lacks it: pairs of parts then
};

/// The rows are in the order of the dtypes' numbers. T is the C++ type of the elements.
inline constexpr std::tuple kDTypeRows{
    DTypeRow<bool>{DType::boolean, "bool", ElementKind::boolean, "BOOL"},
    DTypeRow<std::uint8_t>{DType::u8, "u8", ElementKind::unsigned_integer, "U8"},
    DTypeRow<std::uint16_t>{DType::u16, "u16", ElementKind::unsigned_integer, "U16"},
    DTypeRow<std::uint32_t>{DType::u32, "u32", ElementKind::unsigned_integer, "U32"},
    DTypeRow<std::uint64_t>{DType::u64, "u64", ElementKind::unsigned_integer, "U64"},
    DTypeRow<std::int8_t>{DType::i8, "i8", ElementKind::signed_integer, "I8"},
    DTypeRow<std::int16_t>{DType::i16, "i16", ElementKind::signed_integer, "I16"},
    DTypeRow<std::int32_t>{DType::i32, "i32", ElementKind::signed_integer, "I32"},
    DTypeRow<std::int64_t>{DType::i64, "i64", ElementKind::signed_integer, "I64"},
    DTypeRow<Float16>{DType::f16, "f16", ElementKind::ieee_float, "F16"},
    DTypeRow<BFloat16>{DType::bf16, "bf16", ElementKind::brain_float, "BF16"},
    DTypeRow<float>{DType::f32, "f32", ElementKind::ieee_float, "F32"},
    DTypeRow<double>{DType::f64, "f64", ElementKind::ieee_float, "F64"},
    DTypeRow<Complex64>{DType::complex64, "complex64", ElementKind::complex, "C64"},
    DTypeRow<Complex128>{DType::complex128, "complex128", ElementKind::complex, ""},
};

/// A DTypeRow without the type parameter, so that all rows fit in one array.
struct DTypeFacts {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
  ElementKind kind;
  std::string_view safetensors_name;
};

template <class... T>
constexpr std::array<DTypeFacts, sizeof...(T)> facts_of(const std::tuple<DTypeRow<T>...>& rows) {
  return std::apply(
      [](const auto&... row) { return std::array{DTypeFacts{row.dtype, row.name, sizeof(T), row.kind, row.safetensors_name}...}; }, rows);
}
inline constexpr auto kDTypes = facts_of(kDTypeRows);

/// The bytes of the largest element. Buffers that are cut at its multiples are cut between elements, whatever their dtype.
inline constexpr std::size_t kLargestElementBytes = [] {
  std::size_t most = 0;
  for (const DTypeFacts& facts : kDTypes) most = facts.bytes > most ? facts.bytes : most;
  return most;
}();

struct ReduceOpFacts {
  ReduceOp op;
  std::string_view name;
};
inline constexpr std::array kReduceOps{ReduceOpFacts{ReduceOp::sum, "sum"},         ReduceOpFacts{ReduceOp::prod, "prod"},
                                       ReduceOpFacts{ReduceOp::max, "max"},         ReduceOpFacts{ReduceOp::min, "min"},
                                       ReduceOpFacts{ReduceOp::bit_and, "bit_and"}, ReduceOpFacts{ReduceOp::bit_or, "bit_or"},
                                       ReduceOpFacts{ReduceOp::bit_xor, "bit_xor"}};

/// Whether row i describes number i.
template <class Rows, class Value>
constexpr bool in_order(const Rows& rows, Value member) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (static_cast<std::size_t>(rows[i].*member) != i) return false;
  return true;
}
static_assert(in_order(kDTypes, &DTypeFacts::dtype) && in_order(kReduceOps, &ReduceOpFacts::op));

/// Returns the index of the row whose elements are of type T, or the number of rows if there is none.
template <class T, class... Row>
constexpr std::size_t find_row(const std::tuple<DTypeRow<Row>...>&) {
  std::size_t place = 0;
  const bool found = ((std::is_same_v<T, Row> || (++place, false)) || ...);
  return found ? place : sizeof...(Row);
}

}  // namespace detail

/// The number of dtypes and of operations. They are numbered from 0 to one below it.
///@{
inline constexpr std::size_t kDTypeCount = detail::kDTypes.size();
inline constexpr std::size_t kReduceOpCount = detail::kReduceOps.size();
///@}

/// A C++ type that can be the element type of a tensor.
template <class T>
concept Element = detail::find_row<T>(detail::kDTypeRows) < kDTypeCount;

/// The dtype of elements of type T.
template <Element T>
inline constexpr DType dtype_of = static_cast<DType>(detail::find_row<T>(detail::kDTypeRows));

/// Whether `value` is the number of a dtype or an operation.
///@{
constexpr bool is_valid(DType value) noexcept { return static_cast<std::size_t>(value) < kDTypeCount; }
constexpr bool is_valid(ReduceOp value) noexcept { return static_cast<std::size_t>(value) < kReduceOpCount; }
///@}

/// Returns the dtype or operation with this number, or nothing if there is none. It is meant for numbers that come from the wire, from C or
/// from JavaScript.
template <class Value>
constexpr std::optional<Value> from_number(std::int64_t number) noexcept {
  if (number < 0 || number > UINT8_MAX || !is_valid(static_cast<Value>(number))) return std::nullopt;
  return static_cast<Value>(number);
}

/// Bytes of one element; `dtype` must be valid.
constexpr std::size_t size_of(DType dtype) noexcept { return detail::kDTypes[static_cast<std::size_t>(dtype)].bytes; }
/// The kind of number that the dtype's elements are; `dtype` must be valid.
constexpr ElementKind kind_of(DType dtype) noexcept { return detail::kDTypes[static_cast<std::size_t>(dtype)].kind; }

/// Whether the dtype is real: f16, bf16, f32 or f64.
constexpr bool is_real(DType dtype) noexcept {
  return is_valid(dtype) && (kind_of(dtype) == ElementKind::ieee_float || kind_of(dtype) == ElementKind::brain_float);
}
/// Whether the dtype is real and its elements have fewer than four bytes: f16 or bf16. Arithmetic on such elements is done in f32.
constexpr bool is_narrow(DType dtype) noexcept { return is_real(dtype) && size_of(dtype) < sizeof(float); }
/// Whether the dtype is real or complex.
constexpr bool is_floating(DType dtype) noexcept { return is_real(dtype) || (is_valid(dtype) && kind_of(dtype) == ElementKind::complex); }

/// The dtype of the two parts of a complex dtype's elements, f32 or f64; any other dtype itself.
constexpr DType part_dtype(DType dtype) noexcept {
  if (!is_valid(dtype) || kind_of(dtype) != ElementKind::complex) return dtype;
  return size_of(dtype) == 2 * sizeof(float) ? DType::f32 : DType::f64;
}
/// Whether the operation works on bits: and, or, exclusive or.
constexpr bool is_bitwise(ReduceOp op) noexcept { return op == ReduceOp::bit_and || op == ReduceOp::bit_or || op == ReduceOp::bit_xor; }
/// Whether elements of the dtype can be reduced by the operation: all but floating ones by a bitwise one.
constexpr bool can_reduce(DType dtype, ReduceOp op) noexcept {
  return is_valid(dtype) && is_valid(op) && !(is_bitwise(op) && is_floating(dtype));
}

/// The name: "f32", "bool", "sum", ...; "unknown" if the value is not valid.
///@{
constexpr std::string_view name_of(DType dtype) noexcept {
  return is_valid(dtype) ? detail::kDTypes[static_cast<std::size_t>(dtype)].name : std::string_view("unknown");
}
constexpr std::string_view name_of(ReduceOp op) noexcept {
  return is_valid(op) ? detail::kReduceOps[static_cast<std::size_t>(op)].name : std::string_view("unknown");
}
///@}

/// Returns the dtype that name_of gives this name, or nothing if there is none.
constexpr std::optional<DType> find_dtype(std::string_view name) noexcept {
  for (const detail::DTypeFacts& facts : detail::kDTypes)
    if (facts.name == name) return facts.dtype;
  return std::nullopt;
}

}  // namespace ringlet
