// Checks one hash per dtype over the results of all kernels on fixed input. The constants hold on every machine: where one differs, two
// machines of a group would compute different sums.
#include <catch2/catch.hpp>
#include <cstring>

#include "simd/kernels.hpp"
#include "tests/simd/samples.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr std::size_t kCount = 4'001;

/// The hash function FNV-1a.
class Hash {
 public:
  void add(DType dtype, Bytes elements) {
    canonicalise(dtype, elements);
    for (std::byte byte : elements) value_ = (value_ ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
  }
  void add(double value) {
    Bytes bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    add(DType::f64, bytes);
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

void add_floating(Hash& hash, const simd::Kernels& kernels, DType dtype, const Bytes& input) {
  for (double factor : {3.0, 1.0 / 3}) {
    Bytes multiplied = input, divided = input;
    kernels.multiply(dtype)(multiplied.data(), kCount, factor);
    kernels.divide(dtype)(divided.data(), kCount, factor);
    hash.add(dtype, multiplied);
    hash.add(dtype, divided);
  }
  Bytes finite = input;
  const std::size_t part = size_of(part_dtype(dtype));
  for (std::size_t i = part - 1; i < finite.size(); i += part) finite[i] &= std::byte{0xbf};
  hash.add(kernels.sum_of_squares(dtype)(finite.data(), kCount));
  Bytes canonical = input;
  kernels.canonical_nan(dtype)(canonical.data(), kCount);
  hash.add(dtype, canonical);
  if (!is_real(dtype)) return;
  hash.add(kernels.abs_max(dtype)(finite.data(), kCount));
  for (DType to : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    Bytes out(kCount * size_of(to));
    kernels.cast(dtype, to)(out.data(), input.data(), kCount);
    hash.add(to, out);
  }
}

std::uint64_t hash_of(const simd::Kernels& kernels, DType dtype) {
  Random random(2'026);
  const Bytes a = make_elements(dtype, kCount, random), b = make_elements(dtype, kCount, random);
  Hash hash;
  for (std::size_t op = 0; op < kReduceOpCount; ++op) {
    if (is_bitwise(static_cast<ReduceOp>(op))) continue;
    Bytes out(a.size());
    kernels.reduce(dtype, static_cast<ReduceOp>(op))(out.data(), a.data(), b.data(), kCount);
    hash.add(dtype, out);
  }
  if (is_floating(dtype)) add_floating(hash, kernels, dtype, a);
  return hash.value();
}

constexpr std::uint64_t kGolden[] = {0x4b161af438736d2d, 0x8291c65bce725270, 0xa99e4d1879944d80, 0x577f27aa729652aa, 0xbe30babe6ed82f76,
                                     0x55991ff3a2233b64, 0x6574539e9eaba120, 0xa2fd83ea80064b12, 0x178e1b8683cd6916, 0xd4d362339930f174,
                                     0x99855d360d681b29, 0x7c3a48dfc77fbe1c, 0x6634013d88bae5be, 0x6509ed0b3b3f2d03, 0xe30b5c1ff69aac54};
static_assert(std::size(kGolden) == kDTypeCount);

std::uint64_t hash_of_bits(const simd::Kernels& kernels) {
  Random random(2'028);
  Hash hash;
  for (const auto& facts : ringlet::detail::kDTypes) {
    if (is_floating(facts.dtype)) continue;
    const Bytes a = make_elements(facts.dtype, kCount, random), b = make_elements(facts.dtype, kCount, random);
    for (const ReduceOp op : {ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor}) {
      Bytes out(a.size());
      kernels.reduce(facts.dtype, op)(out.data(), a.data(), b.data(), kCount);
      hash.add(facts.dtype, out);
    }
  }
  return hash.value();
}

constexpr std::uint64_t kGoldenBits = 0x395d94d6f76fac1d;

/// The numbers have no infinities and NaNs, and the second moments have no sign, so that no rule's results are mostly NaN.
std::uint64_t hash_of_updates(const simd::Kernels& kernels, DType dtype) {
  Random random(2'027);
  const auto make = [&](std::byte mask) {
    Bytes elements = make_elements(dtype, kCount, random);
    for (std::size_t i = size_of(dtype) - 1; i < elements.size(); i += size_of(dtype)) elements[i] &= mask;
    return elements;
  };
  const std::byte finite{0xbf}, positive{0x3f};
  Hash hash;
  for (std::size_t rule = 0; rule < simd::kUpdateRuleCount; ++rule) {
    const bool root_of_first = static_cast<simd::UpdateRule>(rule) == simd::UpdateRule::root_mean_square ||
                               static_cast<simd::UpdateRule>(rule) == simd::UpdateRule::adadelta;
    Bytes parameters = make(finite), gradients = make(finite), first = make(root_of_first ? positive : finite), second = make(positive);
    for (int step = 0; step < 3; ++step) {
      kernels.update(dtype, static_cast<simd::UpdateRule>(rule))(
          {parameters.data(), gradients.data(), {first.data(), second.data()}}, kCount,
          {.rate = 0.3, .keep = 0.97, .penalty = 0.01, .decay = {0.9, 0.99}, .gain = {0.1, 0.01}, .correction = 2.7, .epsilon = 1e-8});
    }
    for (const Bytes& result : {parameters, first, second}) hash.add(dtype, result);
  }
  return hash.value();
}

constexpr std::uint64_t kGoldenUpdates[] = {0x7571f41d15b3a21a, 0xd1ab015f1fec069b};

}  // namespace

TEST_CASE("optimizer updates give the golden bits on every target of every machine") {
  for (const simd::Kernels* kernels : simd::available()) {
    INFO(kernels->name());
    CHECK(hash_of_updates(*kernels, DType::f32) == kGoldenUpdates[0]);
    CHECK(hash_of_updates(*kernels, DType::f64) == kGoldenUpdates[1]);
  }
}

TEST_CASE("bitwise reductions give the golden bits on every target of every machine") {
  for (const simd::Kernels* kernels : simd::available()) {
    INFO(kernels->name());
    CHECK(hash_of_bits(*kernels) == kGoldenBits);
  }
}

TEST_CASE("all kernels give the golden bits on every target of every machine") {
  for (const simd::Kernels* kernels : simd::available()) {
    for (std::size_t d = 0; d < kDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      INFO(kernels->name() << ' ' << name_of(dtype));
      CHECK(hash_of(*kernels, dtype) == kGolden[d]);
    }
  }
}
