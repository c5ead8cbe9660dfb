// Compares the table of dtypes with what is known of each dtype without it.
#include <catch2/catch.hpp>

#include "core/base/names_text.hpp"

using namespace ringlet;

TEST_CASE("a dtype has the size of its C++ type, and a name by which it is found") {
  const std::vector<std::pair<std::string_view, std::size_t>> expected{
      {"bool", 1}, {"u8", 1},  {"u16", 2},  {"u32", 4}, {"u64", 8}, {"i8", 1},        {"i16", 2},        {"i32", 4},
      {"i64", 8},  {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}, {"complex64", 8}, {"complex128", 16}};
  REQUIRE(expected.size() == kDTypeCount);
  for (std::size_t number = 0; number < kDTypeCount; ++number) {
    const auto dtype = from_number<DType>(static_cast<std::int64_t>(number));
    REQUIRE(dtype);
    CHECK(name_of(*dtype) == expected[number].first);
    CHECK(size_of(*dtype) == expected[number].second);
    CHECK(find_dtype(expected[number].first) == dtype);
  }
  CHECK_FALSE(find_dtype("f8"));
  CHECK(dtype_of<bool> == DType::boolean);
  CHECK(dtype_of<std::int64_t> == DType::i64);
  CHECK(dtype_of<BFloat16> == DType::bf16);
  CHECK(dtype_of<Complex64> == DType::complex64);
  CHECK(dtype_of<Complex128> == DType::complex128);
  STATIC_REQUIRE_FALSE(Element<char*>);
}

TEST_CASE("numbers from outside name a dtype or an operation, or nothing") {
  for (const std::int64_t number : {std::int64_t{-1}, static_cast<std::int64_t>(kDTypeCount), std::int64_t{256}, INT64_MAX, INT64_MIN})
    CHECK_FALSE(from_number<DType>(number));
  CHECK(from_number<ReduceOp>(3) == ReduceOp::min);
  CHECK(from_number<ReduceOp>(6) == ReduceOp::bit_xor);
  CHECK_FALSE(from_number<ReduceOp>(7));
  CHECK(name_of(static_cast<DType>(200)) == "unknown");
  CHECK_FALSE(is_floating(static_cast<DType>(200)));
}

TEST_CASE("booleans and integers alone are reduced bit by bit") {
  for (const ReduceOp op : {ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor}) {
    for (const DType dtype : {DType::boolean, DType::u8, DType::u64, DType::i16}) CHECK(can_reduce(dtype, op));
    for (const DType dtype : {DType::f16, DType::bf16, DType::f64, DType::complex64, DType::complex128}) CHECK_FALSE(can_reduce(dtype, op));
  }
  CHECK(can_reduce(DType::complex128, ReduceOp::max));
  CHECK_FALSE(can_reduce(static_cast<DType>(200), ReduceOp::sum));
  CHECK_FALSE(can_reduce(DType::f32, static_cast<ReduceOp>(200)));
}

TEST_CASE("sorts of dtypes") {
  CHECK(names_of_dtypes(is_narrow, "and") == "f16 and bf16");
  CHECK(names_of_dtypes(is_real, "or") == "f16, bf16, f32 or f64");
  CHECK(names_of_dtypes(is_floating, "or") == "f16, bf16, f32, f64, complex64 or complex128");
  CHECK(part_dtype(DType::complex64) == DType::f32);
  CHECK(part_dtype(DType::complex128) == DType::f64);
  CHECK(part_dtype(DType::f16) == DType::f16);
  CHECK(kind_of(DType::boolean) == ElementKind::boolean);
  CHECK(kind_of(DType::u16) == ElementKind::unsigned_integer);
  CHECK(kind_of(DType::i8) == ElementKind::signed_integer);
  CHECK(kind_of(DType::f16) == ElementKind::ieee_float);
  CHECK(kind_of(DType::bf16) == ElementKind::brain_float);
}
