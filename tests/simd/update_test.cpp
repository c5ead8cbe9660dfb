// Checks that every target's steps of the optimizers give the scalar target's bits. What they compute is tested with the optimizers.
#include <catch2/catch.hpp>
#include <limits>

#include "simd/kernels.hpp"
#include "tests/simd/each_target.hpp"
#include "tests/simd/samples.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr simd::UpdateCoefficients kCoefficients{
    .rate = 0.013, .keep = 0.9987, .penalty = 0.02, .decay = {0.9, 0.97}, .gain = {0.1, 0.03}, .correction = 3.3, .epsilon = 1e-7};

std::vector<std::size_t> update_lengths() {
  std::vector<std::size_t> all;
  for (std::size_t n = 0; n <= 70; ++n) all.push_back(n);
  for (std::size_t n : {127, 128, 129, 1'000, 4'099}) all.push_back(n);
  return all;
}

struct Arrays {
  Bytes parameters, gradients, first, second;
};

Arrays make_arrays(DType dtype, std::size_t count, Random& random) {
  const auto make = [&] { return make_elements(dtype, count, random); };
  Arrays arrays;
  for (Bytes* each : {&arrays.parameters, &arrays.gradients, &arrays.first, &arrays.second}) *each = make();
  return arrays;
}

bool updates_alike(simd::UpdateFn kernel, simd::UpdateFn scalar, DType dtype, Arrays arrays, Random& random) {
  const std::size_t count = arrays.parameters.size() / size_of(dtype);
  const auto place = [&](const Bytes& elements) { return Placed(elements, random.below(kMaxShift)); };
  Placed parameters = place(arrays.parameters), gradients = place(arrays.gradients), first = place(arrays.first),
         second = place(arrays.second);
  kernel({parameters.data(), gradients.data(), {first.data(), second.data()}}, count, kCoefficients);
  const Bytes gradients_before = arrays.gradients;
  scalar({arrays.parameters.data(), arrays.gradients.data(), {arrays.first.data(), arrays.second.data()}}, count, kCoefficients);
  const auto alike = [&](const Placed& placed, const Bytes& expected) {
    return first_difference(dtype, placed.elements(), expected) == count && placed.guards_hold();
  };
  return alike(parameters, arrays.parameters) && alike(first, arrays.first) && alike(second, arrays.second) &&
         gradients.elements() == gradients_before && gradients.guards_hold();
}

}  // namespace

TEST_CASE("every target updates as scalar does") {
  for_each_target([](const simd::Kernels& kernels, const simd::Kernels& scalar) {
    Random random(31);
    for (DType dtype : {DType::f32, DType::f64}) {
      for (std::size_t r = 0; r < simd::kUpdateRuleCount; ++r) {
        const auto rule = static_cast<simd::UpdateRule>(r);
        INFO(kernels.name() << ' ' << name_of(dtype) << " rule " << r);
        for (std::size_t count : update_lengths()) {
          const Arrays arrays = make_arrays(dtype, count, random);
          if (!updates_alike(kernels.update(dtype, rule), scalar.update(dtype, rule), dtype, arrays, random))
            FAIL_CHECK(count << " elements");
        }
      }
    }
  });
}

TEST_CASE("there are updates of f32 and f64 alone") {
  for (const simd::Kernels* kernels : simd::available()) {
    for (std::size_t d = 0; d < kDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      for (std::size_t r = 0; r < simd::kUpdateRuleCount; ++r) {
        const bool exists = kernels->update(dtype, static_cast<simd::UpdateRule>(r)) != nullptr;
        CHECK(exists == (dtype == DType::f32 || dtype == DType::f64));
      }
    }
  }
}

TEST_CASE("without penalty an infinite parameter stays what it is") {
  for (const simd::Kernels* kernels : simd::available()) {
    float parameter = -std::numeric_limits<float>::infinity(), gradient = 0, velocity = 0;
    const simd::UpdateArrays arrays{reinterpret_cast<std::byte*>(&parameter),
                                    reinterpret_cast<const std::byte*>(&gradient),
                                    {reinterpret_cast<std::byte*>(&velocity), nullptr}};
    for (auto rule : {simd::UpdateRule::sgd, simd::UpdateRule::momentum, simd::UpdateRule::nesterov}) {
      kernels->update(DType::f32, rule)(arrays, 1, {.rate = 0.1, .decay = {0.9, 0}, .gain = {1, 0}});
      CHECK(parameter == -std::numeric_limits<float>::infinity());
      CHECK(velocity == 0);
    }
  }
}

TEST_CASE("a NaN gradient is seen in the parameter") {
  for (const simd::Kernels* kernels : simd::available()) {
    for (std::size_t r = 0; r < simd::kUpdateRuleCount; ++r) {
      INFO(kernels->name() << " rule " << r);
      std::vector<float> parameters(40, 1.0F), gradients(40, 0.5F), first(40, 0.25F), second(40, 0.25F);
      gradients[17] = std::numeric_limits<float>::quiet_NaN();
      const auto bytes = [](std::vector<float>& values) { return reinterpret_cast<std::byte*>(values.data()); };
      kernels->update(DType::f32, static_cast<simd::UpdateRule>(r))({bytes(parameters), bytes(gradients), {bytes(first), bytes(second)}},
                                                                    40, kCoefficients);
      for (std::size_t i = 0; i < 40; ++i) CHECK((parameters[i] != parameters[i]) == (i == 17));
    }
  }
}
