#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <ringlet/error.hpp>
#include <ringlet/optimizers.hpp>

using namespace ringlet;
using Catch::Matchers::Contains;

TEST_CASE("gradients above the norm are scaled down to it together") {
  std::vector<float> a{3, 0}, b{0, 4};
  CHECK(clip_grad_norm({{"a", a}, {"b", b}}, 1.0) == 5.0);
  const float factor = static_cast<float>(1.0 / (5.0 + 1e-6));
  CHECK(a == std::vector<float>{3 * factor, 0});
  CHECK(b == std::vector<float>{0, 4 * factor});
}

TEST_CASE("gradients within the norm stay as they are") {
  std::vector<double> a{3, 4};
  CHECK(clip_grad_norm({{"a", a}}, 6.0) == 5.0);
  CHECK(a == std::vector<double>{3, 4});
  CHECK(clip_grad_norm({{"a", a}}, std::numeric_limits<double>::infinity()) == 5.0);
  CHECK(a == std::vector<double>{3, 4});
  CHECK(clip_grad_norm({}, 1.0) == 0.0);
}

TEST_CASE("no gradient is too long for its norm") {
  std::vector<Float16> half(100, Float16{0x7bff});  // 65504, the largest finite number
  CHECK(clip_grad_norm({{"h", half}}, 1.0) == 655'040.0);
  // 65504 / 655040 = 0.1
  for (const Float16& value : half) CHECK(value == Float16{0x2e66});
  std::vector<float> single(4, std::numeric_limits<float>::max());
  CHECK(clip_grad_norm({{"s", single}}, 1.0) == 2.0 * static_cast<double>(std::numeric_limits<float>::max()));
  CHECK(static_cast<double>(single[0]) == Approx(0.5));
}

TEST_CASE("the norm of zero clips all to zero") {
  std::vector<float> a{3, 4};
  CHECK(clip_grad_norm({{"a", a}}, 0.0) == 5.0);
  CHECK(a == std::vector<float>{0, 0});
}

TEST_CASE("a NaN shows in every gradient") {
  std::vector<float> a{1}, b{std::numeric_limits<float>::quiet_NaN()};
  CHECK(std::isnan(clip_grad_norm({{"a", a}, {"b", b}}, 1.0)));
  CHECK(std::isnan(a[0]));
  CHECK(std::isnan(b[0]));
}

TEST_CASE("complex gradients and views with gaps are clipped too") {
  std::vector<Complex64> a{{3, 4}};
  std::vector<float> memory{0, 7, 12, 7};
  const std::int64_t stride[]{2};
  CHECK(clip_grad_norm({{"a", a}, {"b", {memory.data(), DType::f32, Shape{2}, stride}}}, 6.5) == 13.0);
  CHECK(static_cast<double>(a[0].imag()) == Approx(2));
  CHECK(memory[1] == 7);
  CHECK(static_cast<double>(memory[2]) == Approx(6));
}

TEST_CASE("what cannot be clipped is refused") {
  std::vector<std::int32_t> integers(2);
  std::vector<float> a{3, 4};
  CHECK_THROWS_WITH(clip_grad_norm({{"a", a}, {"n", integers}}, 1.0), Contains("'n'") && Contains("i32"));
  CHECK_THROWS_WITH(clip_grad_norm({{"a", a}}, -1.0), Contains("max_norm") && Contains("-1"));
  CHECK_THROWS_AS(clip_grad_norm({{"a", a}}, std::numeric_limits<double>::quiet_NaN()), InvalidArgument);
  CHECK(a == std::vector<float>{3, 4});
}
