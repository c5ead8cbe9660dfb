// Tests of elements of 16 bits, mixed dtypes and views with gaps.
#include <catch2/catch.hpp>
#include <cfenv>
#include <cmath>
#include <ringlet/error.hpp>

#include "simd/kernels.hpp"
#include "tests/core/optimizers/rules.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

// This is more than one block of the conversion, and not a multiple of it.
constexpr std::size_t kCount = 1'300;

Tensor converted(ConstTensorView values, DType dtype) {
  Tensor result(dtype, values.shape());
  simd::available().front()->cast(values.dtype(), dtype)(result.view().data(), values.data(), values.count());
  return result;
}

Tensor random_tensor(DType dtype, std::uint64_t seed, double scale) {
  std::vector<double> values = random_values(kCount, seed, scale);
  return converted(values, dtype);
}

bool same_bits(ConstTensorView a, ConstTensorView b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::equal(a.data(), a.data() + a.bytes(), b.data());
}

/// Compares several steps in these dtypes with the same steps in f32, whose results are rounded after each.
void check_rounded_once(const Rule& rule, DType parameter_dtype, DType gradient_dtype, DType state_dtype) {
  INFO(rule.name << ": parameters " << name_of(parameter_dtype) << ", gradients " << name_of(gradient_dtype) << ", state "
                 << name_of(state_dtype));
  const auto narrow = rule.make(state_dtype), wide = rule.make(DType::f32);
  Tensor parameters = random_tensor(parameter_dtype, 1, 2.0);
  for (std::uint64_t step = 0; step < 4; ++step) {
    Tensor gradients = random_tensor(gradient_dtype, 10 + step, 0.5);
    Tensor wide_parameters = converted(parameters, DType::f32), wide_gradients = converted(gradients, DType::f32);
    wide->apply_gradients({{"w", wide_gradients}}, {{"w", wide_parameters}});
    narrow->apply_gradients({{"w", gradients}}, {{"w", parameters}});
    CHECK(same_bits(parameters, converted(wide_parameters, parameter_dtype)));
    const Tree narrow_state = narrow->state(), wide_state = wide->state();
    REQUIRE(narrow_state.size() == wide_state.size());
    for (std::size_t i = 0; i < narrow_state.size(); ++i) {
      CHECK(same_bits(narrow_state[i].values, converted(wide_state[i].values, state_dtype)));
      copy(converted(narrow_state[i].values, DType::f32), wide_state[i].values);
    }
  }
}

}  // namespace

TEST_CASE("dtypes are computed in f32 and rounded once") {
  for (const Rule& rule : all_rules()) {
    check_rounded_once(rule, DType::bf16, DType::bf16, DType::bf16);
    check_rounded_once(rule, DType::bf16, DType::f32, DType::f32);
    check_rounded_once(rule, DType::bf16, DType::bf16, DType::f32);
    check_rounded_once(rule, DType::f16, DType::f16, DType::f32);
    check_rounded_once(rule, DType::f32, DType::f16, DType::bf16);
  }
}

TEST_CASE("one f64 tensor makes the arithmetic f64") {
  for (const Rule& rule : all_rules()) {
    INFO(rule.name);
    const auto mixed = rule.make(DType::f64), wide = rule.make(DType::f64);
    Tensor parameters = random_tensor(DType::f32, 1, 2.0), gradients = random_tensor(DType::f64, 2, 0.5);
    Tensor wide_parameters = converted(parameters, DType::f64);
    mixed->apply_gradients({{"w", gradients}}, {{"w", parameters}});
    wide->apply_gradients({{"w", gradients}}, {{"w", wide_parameters}});
    CHECK(same_bits(parameters, converted(wide_parameters, DType::f32)));
  }
}

TEST_CASE("f32 state keeps what 16 bits would lose") {
  // A step adds 0.001 * gradient^2 to a second moment, which is soon less than half a unit of bf16.
  const auto moment_after = [](std::optional<DType> state_dtype) {
    Adam optimizer(0.0, {.state_dtype = state_dtype});
    std::vector<BFloat16> parameters(1, BFloat16{0x3f80}), gradients(1, BFloat16{0x3f80});
    for (int step = 0; step < 1'000; ++step) optimizer.apply_gradients({{"w", gradients}}, {{"w", parameters}});
    return converted(optimizer.state().at("w.v"), DType::f64).values<double>()[0];
  };
  CHECK(moment_after(DType::f32) == Approx(1 - std::pow(0.999, 1'000)).epsilon(1e-4));
  CHECK(moment_after({}) < 0.5);
}

TEST_CASE("state has the gradient's dtype where the options say nothing, and the parameter's after init") {
  std::vector<BFloat16> parameters(3);
  std::vector<float> gradients(3);
  Adam lazy(0.1);
  lazy.apply_gradients({{"w", gradients}}, {{"w", parameters}});
  CHECK(lazy.state().at("w.m").dtype() == DType::f32);
  Adam prepared(0.1);
  prepared.init({{"w", parameters}});
  CHECK(prepared.state().at("w.m").dtype() == DType::bf16);
  Adam told(0.1, {.state_dtype = DType::f64});
  told.init({{"w", parameters}});
  CHECK(told.state().at("w.v").dtype() == DType::f64);
  CHECK(told.state_bytes() == 2 * 3 * 8);
}

TEST_CASE("views with gaps are updated where they stand") {
  const std::int64_t strides[]{1, 5};  // the matrix is stored column by column, with gaps
  for (const Rule& rule : all_rules()) {
    INFO(rule.name);
    const auto strided = rule.make({}), packed = rule.make({});
    std::vector<float> parameter_memory = random_values_as<float>(20, 1, 1.0), gradient_memory = random_values_as<float>(20, 2, 1.0);
    const std::vector<float> before = parameter_memory;
    const TensorView parameters(parameter_memory.data(), DType::f32, Shape{3, 4}, strides);
    const TensorView gradients(gradient_memory.data(), DType::f32, Shape{3, 4}, strides);
    Tensor packed_parameters = Tensor::copy_of(parameters), packed_gradients = Tensor::copy_of(gradients);
    for (int step = 0; step < 3; ++step) {
      strided->apply_gradients({{"w", gradients}}, {{"w", parameters}});
      packed->apply_gradients({{"w", packed_gradients}}, {{"w", packed_parameters}});
    }
    CHECK(same_bits(Tensor::copy_of(parameters), packed_parameters));
    for (std::size_t column = 0; column < 4; ++column)
      for (std::size_t row = 3; row < 5; ++row) CHECK(parameter_memory[column * 5 + row] == before[column * 5 + row]);
  }
}

TEST_CASE("a caller's rounding mode changes nothing") {
  for (const Rule& rule : all_rules()) {
    INFO(rule.name);
    const auto nearest = rule.make({}), upward = rule.make({});
    std::vector<float> first = random_values_as<float>(kCount, 1, 1.0), second = first;
    std::vector<float> gradients = random_values_as<float>(kCount, 2, 1.0), again = gradients;
    for (int step = 0; step < 3; ++step) {
      const double norm = clip_grad_norm({{"w", gradients}}, 2.0);
      nearest->apply_gradients({{"w", gradients}}, {{"w", first}});
      std::fesetround(FE_UPWARD);
      const double upward_norm = clip_grad_norm({{"w", again}}, 2.0);
      upward->apply_gradients({{"w", again}}, {{"w", second}});
      std::fesetround(FE_TONEAREST);
      CHECK(norm == upward_norm);
    }
    CHECK(first == second);
    CHECK(gradients == again);
  }
}

TEST_CASE("small numbers are not flushed to zero") {
  std::vector<float> parameters{0.0F}, gradients{1e-39F};
  SGD(1.0).apply_gradients({{"w", gradients}}, {{"w", parameters}});
  CHECK(parameters[0] == -1e-39F);
}
