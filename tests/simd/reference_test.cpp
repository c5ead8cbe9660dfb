// Checks the scalar target against a second implementation of the definitions.
#include <catch2/catch.hpp>

#include "simd/kernels.hpp"
#include "tests/simd/reference.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

const simd::Kernels& scalar() { return *simd::available().front(); }

const std::vector<DType> kReal = dtypes_that(is_real);
const std::vector<DType> kFloating = dtypes_that(is_floating);

void check_reduce(DType dtype, ReduceOp op, const Bytes& a, const Bytes& b) {
  Bytes out(a.size());
  const std::size_t count = a.size() / size_of(dtype);
  scalar().reduce(dtype, op)(out.data(), a.data(), b.data(), count);
  INFO(name_of(dtype) << ' ' << name_of(op));
  CHECK(first_difference(dtype, out, reference_reduce(dtype, op, a, b)) == count);
}

bool equal_or_nan(double left, double right) { return left == right || (left != left && right != right); }

}  // namespace

TEST_CASE("scalar reductions follow their definitions") {
  Random random(11);
  for (std::size_t d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    const Pairs corners = make_corner_pairs(dtype);
    const Bytes a = make_elements(dtype, 20'000, random), b = make_elements(dtype, 20'000, random);
    for (std::size_t op = 0; op < kReduceOpCount; ++op) {
      if (!can_reduce(dtype, static_cast<ReduceOp>(op))) continue;
      check_reduce(dtype, static_cast<ReduceOp>(op), corners.a, corners.b);
      check_reduce(dtype, static_cast<ReduceOp>(op), a, b);
    }
  }
}

TEST_CASE("scalar reductions of all pairs of bytes follow their definitions") {
  for (DType dtype : {DType::boolean, DType::u8, DType::i8}) {
    Bytes a(65'536), b(65'536);
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<std::byte>(i);
      b[i] = static_cast<std::byte>(i >> 8);
    }
    for (std::size_t op = 0; op < kReduceOpCount; ++op) check_reduce(dtype, static_cast<ReduceOp>(op), a, b);
  }
}

TEST_CASE("scalar scaling, folds and canonical NaNs follow their definitions") {
  Random random(12);
  for (DType dtype : kFloating) {
    INFO(name_of(dtype));
    const std::size_t count = 10'000;
    const Bytes data = make_elements(dtype, count, random);
    for (double factor : {0.5, 1.0 / 3, -7.0, 1e-42, 1e300, 0.0}) {
      INFO(factor);
      Bytes multiplied = data, divided = data;
      scalar().multiply(dtype)(multiplied.data(), count, factor);
      scalar().divide(dtype)(divided.data(), count, factor);
      CHECK(first_difference(dtype, multiplied, reference_scale(dtype, false, data, factor)) == count);
      CHECK(first_difference(dtype, divided, reference_scale(dtype, true, data, factor)) == count);
    }
    Bytes canonical = data;
    scalar().canonical_nan(dtype)(canonical.data(), count);
    CHECK(first_difference(dtype, canonical, data) == count);
  }
}

TEST_CASE("canonical NaNs have the positive quiet pattern and nothing else changes") {
  Bytes half(65'536 * 2);
  for (std::size_t i = 0; i < 65'536; ++i) set_element(half, i, static_cast<std::uint16_t>(i));
  for (const auto& [dtype, infinity, nan] : {std::tuple(DType::f16, 0x7c00, 0x7e00), std::tuple(DType::bf16, 0x7f80, 0x7fc0)}) {
    Bytes canonical = half;
    scalar().canonical_nan(dtype)(canonical.data(), 65'536);
    std::size_t wrong = 0;
    for (int i = 0; i < 65'536; ++i) {
      const int expected = (i & 0x7fff) > infinity ? nan : i;
      wrong += element<std::uint16_t>(canonical, static_cast<std::size_t>(i)) != expected;
    }
    CHECK(wrong == 0);
  }
  Bytes wide(16);
  set_element(wide, 0, std::uint64_t{0xfff4'0000'0000'0001});
  scalar().canonical_nan(DType::f64)(wide.data(), 1);
  CHECK(element<std::uint64_t>(wide, 0) == 0x7ff8'0000'0000'0000);
  set_element(wide, 1, std::uint64_t{0xffa0'0000'8000'0000});
  scalar().canonical_nan(DType::complex64)(wide.data() + 8, 1);
  CHECK(element<std::uint64_t>(wide, 1) == 0x7fc0'0000'8000'0000);
}

TEST_CASE("scalar folds follow their definitions") {
  Random random(13);
  for (DType dtype : kFloating) {
    for (std::size_t count : {0, 1, 15, 16, 17, 255, 256, 257, 1'000, 5'003}) {
      INFO(name_of(dtype) << ' ' << count);
      Bytes data = make_elements(dtype, count, random);
      for (bool with_nan : {true, false}) {
        // Clearing bit 6 of every byte clears the exponent's highest bit, which leaves no infinity and no NaN.
        if (!with_nan) {
          for (std::size_t i = 0; i < data.size(); ++i) data[i] &= std::byte{0xbf};
        }
        CHECK(equal_or_nan(scalar().sum_of_squares(dtype)(data.data(), count), reference_sum_of_squares(dtype, data)));
        if (!is_real(dtype)) continue;
        CHECK(equal_or_nan(scalar().abs_max(dtype)(data.data(), count), reference_abs_max(dtype, data)));
      }
    }
  }
}

TEST_CASE("kernels exist for the dtypes that are promised") {
  for (const simd::Kernels* kernels : simd::available()) {
    for (std::size_t d = 0; d < kDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      const bool floating = is_floating(dtype), real = is_real(dtype);
      INFO(kernels->name() << ' ' << name_of(dtype));
      for (const auto& op : ringlet::detail::kReduceOps) CHECK((kernels->reduce(dtype, op.op) != nullptr) == can_reduce(dtype, op.op));
      CHECK((kernels->multiply(dtype) != nullptr) == floating);
      CHECK((kernels->divide(dtype) != nullptr) == floating);
      CHECK((kernels->sum_of_squares(dtype) != nullptr) == floating);
      CHECK((kernels->canonical_nan(dtype) != nullptr) == floating);
      CHECK((kernels->abs_max(dtype) != nullptr) == real);
      for (std::size_t to = 0; to < kDTypeCount; ++to) {
        const bool to_real = is_real(static_cast<DType>(to));
        CHECK((kernels->cast(dtype, static_cast<DType>(to)) != nullptr) == (real && to_real));
      }
    }
  }
}

TEST_CASE("a target is found by its name, the fastest without one") {
  CHECK(simd::find("scalar") == simd::available().front());
  CHECK(simd::find("") == simd::available().back());
  CHECK(simd::find("no such target") == nullptr);
  for (const simd::Kernels* kernels : simd::available()) CHECK(simd::find(kernels->name()) == kernels);
}

TEST_CASE("scalar casts follow their definitions") {
  Random random(14);
  for (DType from : kReal) {
    for (DType to : kReal) {
      INFO(name_of(from) << " to " << name_of(to));
      const std::size_t count = 50'000;
      const Bytes in = make_elements(from, count, random);
      Bytes out(count * size_of(to));
      scalar().cast(from, to)(out.data(), in.data(), count);
      CHECK(first_difference(to, out, from == to ? in : reference_cast(from, to, in)) == count);
    }
  }
}
