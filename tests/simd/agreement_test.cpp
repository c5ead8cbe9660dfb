// Checks that every target gives the scalar target's bits, wherever the data lies and however long it is.
#include <catch2/catch.hpp>
#include <cstring>

#include "simd/kernels.hpp"
#include "tests/simd/each_target.hpp"
#include "tests/simd/samples.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

std::vector<std::size_t> lengths() {
  std::vector<std::size_t> all;
  for (std::size_t n = 0; n <= 200; ++n) all.push_back(n);
  for (std::size_t n : {255, 256, 257, 511, 1'000, 1'031, 4'099, 20'011}) all.push_back(n);
  return all;
}

bool same_bits(double left, double right) { return std::memcmp(&left, &right, sizeof left) == 0 || (left != left && right != right); }

/// Returns whether the kernel gives the expected bits out of place, in place of a, and in place of b.
bool reduces_alike(simd::ReduceFn kernel, DType dtype, const Bytes& a, const Bytes& b, const Bytes& expected, Random& random) {
  const std::size_t count = a.size() / size_of(dtype);
  Placed left(a, random.below(kMaxShift)), right(b, random.below(kMaxShift)), out(Bytes(a.size()), random.below(kMaxShift));
  kernel(out.data(), left.data(), right.data(), count);
  bool alike =
      first_difference(dtype, out.elements(), expected) == count && out.guards_hold() && left.elements() == a && right.elements() == b;
  kernel(left.data(), left.data(), right.data(), count);
  alike = alike && first_difference(dtype, left.elements(), expected) == count && left.guards_hold() && right.elements() == b;
  Placed again(a, random.below(kMaxShift));
  kernel(right.data(), again.data(), right.data(), count);
  return alike && first_difference(dtype, right.elements(), expected) == count && right.guards_hold() && again.elements() == a;
}

}  // namespace

TEST_CASE("every target reduces as scalar does") {
  for_each_target([](const simd::Kernels& kernels, const simd::Kernels& scalar) {
    Random random(21);
    for (std::size_t d = 0; d < kDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      for (std::size_t o = 0; o < kReduceOpCount; ++o) {
        const auto op = static_cast<ReduceOp>(o);
        if (!can_reduce(dtype, op)) continue;
        INFO(kernels.name() << ' ' << name_of(dtype) << ' ' << name_of(op));
        for (std::size_t count : lengths()) {
          const Bytes a = make_elements(dtype, count, random), b = make_elements(dtype, count, random);
          Bytes expected(a.size());
          scalar.reduce(dtype, op)(expected.data(), a.data(), b.data(), count);
          if (!reduces_alike(kernels.reduce(dtype, op), dtype, a, b, expected, random)) FAIL_CHECK(count << " elements");
        }
      }
    }
  });
}

TEST_CASE("every target reduces all pairs of corner cases as scalar does") {
  for_each_target([](const simd::Kernels& kernels, const simd::Kernels& scalar) {
    for (std::size_t d = 0; d < kDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      const Pairs pairs = make_corner_pairs(dtype);
      for (std::size_t o = 0; o < kReduceOpCount; ++o) {
        const auto op = static_cast<ReduceOp>(o);
        if (!can_reduce(dtype, op)) continue;
        Bytes out(pairs.a.size()), expected(pairs.a.size());
        kernels.reduce(dtype, op)(out.data(), pairs.a.data(), pairs.b.data(), pairs.count);
        scalar.reduce(dtype, op)(expected.data(), pairs.a.data(), pairs.b.data(), pairs.count);
        INFO(kernels.name() << ' ' << name_of(dtype) << ' ' << name_of(op));
        CHECK(first_difference(dtype, out, expected) == pairs.count);
      }
    }
  });
}

TEST_CASE("every target scales, folds and canonicalises as scalar does") {
  for_each_target([](const simd::Kernels& kernels, const simd::Kernels& scalar) {
    Random random(22);
    for (const DType dtype : dtypes_that(is_floating)) {
      for (std::size_t count : lengths()) {
        const Bytes data = make_elements(dtype, count, random);
        const double factor = static_cast<double>(random.below(1'000)) / 37 - 13;
        INFO(kernels.name() << ' ' << name_of(dtype) << ' ' << count);
        const auto check_in_place = [&](auto run) {
          Placed placed(data, random.below(kMaxShift));
          Bytes expected = data;
          run(kernels, placed.data());
          run(scalar, expected.data());
          if (first_difference(dtype, placed.elements(), expected) != count || !placed.guards_hold()) FAIL_CHECK("in place");
          return std::pair(placed.elements(), expected);
        };
        check_in_place([&](const simd::Kernels& target, std::byte* at) { target.multiply(dtype)(at, count, factor); });
        check_in_place([&](const simd::Kernels& target, std::byte* at) { target.divide(dtype)(at, count, factor); });
        const auto [canonical, expected] =
            check_in_place([&](const simd::Kernels& target, std::byte* at) { target.canonical_nan(dtype)(at, count); });
        if (canonical != expected) FAIL_CHECK("canonical_nan");
        Placed placed(canonical, random.below(kMaxShift));
        if (!same_bits(kernels.sum_of_squares(dtype)(placed.data(), count), scalar.sum_of_squares(dtype)(data.data(), count)))
          FAIL_CHECK("sum_of_squares");
        if (!is_real(dtype)) continue;
        if (!same_bits(kernels.abs_max(dtype)(placed.data(), count), scalar.abs_max(dtype)(data.data(), count))) FAIL_CHECK("abs_max");
      }
    }
  });
}

TEST_CASE("sums of squares and largest magnitudes of finite numbers agree bit for bit") {
  for_each_target([](const simd::Kernels& kernels, const simd::Kernels& scalar) {
    Random random(23);
    for (const DType dtype : dtypes_that(is_floating)) {
      for (std::size_t count : lengths()) {
        Bytes data = make_elements(dtype, count, random);
        // Clearing the exponent's highest bit leaves no infinity and no NaN.
        const std::size_t part = size_of(part_dtype(dtype));
        for (std::size_t i = part - 1; i < data.size(); i += part) data[i] &= std::byte{0xbf};
        INFO(kernels.name() << ' ' << name_of(dtype) << ' ' << count);
        if (!same_bits(kernels.sum_of_squares(dtype)(data.data(), count), scalar.sum_of_squares(dtype)(data.data(), count)))
          FAIL_CHECK("sum_of_squares");
        if (!is_real(dtype)) continue;
        if (!same_bits(kernels.abs_max(dtype)(data.data(), count), scalar.abs_max(dtype)(data.data(), count))) FAIL_CHECK("abs_max");
      }
    }
  });
}

TEST_CASE("every target casts as scalar does") {
  for_each_target([](const simd::Kernels& kernels, const simd::Kernels& scalar) {
    Random random(24);
    for (const DType from : dtypes_that(is_real)) {
      for (const DType to : dtypes_that(is_real)) {
        INFO(kernels.name() << ' ' << name_of(from) << " to " << name_of(to));
        for (std::size_t count : lengths()) {
          const Bytes in = make_elements(from, count, random);
          Bytes expected(count * size_of(to));
          Placed placed(in, random.below(kMaxShift)), out(expected, random.below(kMaxShift));
          kernels.cast(from, to)(out.data(), placed.data(), count);
          scalar.cast(from, to)(expected.data(), in.data(), count);
          if (first_difference(to, out.elements(), expected) != count || !out.guards_hold()) FAIL_CHECK(count << " elements");
        }
      }
    }
  });
}
