// Compares the encoding in blocks with a plain one in f64, byte for byte, on every target.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "simd/kernels.hpp"
#include "tests/simd/each_target.hpp"
#include "tests/simd/samples.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr BlockFormat kFormats[] = {BlockFormat::int8, BlockFormat::int4};
static_assert(std::size(kFormats) == kBlockFormatCount);

/// The numbers that docs/library.md gives for each format.
struct Numbers {
  int most_code;       // 127 or 7
  int most_exponent;   // of a scale
  int least_exponent;  // byte 0
};
Numbers numbers_of(BlockFormat format) { return format == BlockFormat::int8 ? Numbers{127, 121, -70} : Numbers{7, 125, -66}; }

constexpr int kFirstSpecial = 192, kSpecials = 48;

std::size_t blocks_for(BlockFormat format, std::size_t count) { return (count + block_elements(format) - 1) / block_elements(format); }

void put_code(BlockFormat format, std::byte* block, std::size_t element, int code) {
  if (format == BlockFormat::int8) {
    block[1 + element] = static_cast<std::byte>(code);
    return;
  }
  std::byte& both = block[1 + element % 16];
  both |= static_cast<std::byte>((code & 15) << (element < 16 ? 0 : 4));
}

int code_at(BlockFormat format, const std::byte* block, std::size_t element) {
  if (format == BlockFormat::int8) return static_cast<std::int8_t>(block[1 + element]);
  const int nibble = (static_cast<int>(block[1 + element % 16]) >> (element < 16 ? 0 : 4)) & 15;
  return nibble < 8 ? nibble : nibble - 16;
}

int exponent_of(BlockFormat format, int scale) {
  const Numbers numbers = numbers_of(format);
  if (scale < kFirstSpecial) return numbers.least_exponent + scale;
  return numbers.least_exponent + 3 + 4 * std::min(scale - kFirstSpecial, kSpecials - 1);
}

/// Looks for the least scale that fits, by trying all of them.
void encode_plainly(BlockFormat format, std::byte* block, const std::vector<double>& values) {
  const Numbers numbers = numbers_of(format);
  bool special = false;
  double largest = 0;
  for (const double value : values) {
    special |= !std::isfinite(value);
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  const int most = special ? numbers.most_code - 1 : numbers.most_code;
  int scale = special ? kFirstSpecial : 0;
  const int last = special ? kFirstSpecial + kSpecials - 1 : kFirstSpecial - 1;
  while (scale < last && largest >= std::ldexp(most + 0.5, exponent_of(format, scale))) ++scale;
  block[0] = static_cast<std::byte>(scale);
  for (std::size_t i = 0; i < values.size(); ++i) {
    int code = 0;
    if (std::isnan(values[i]))
      code = -numbers.most_code - 1;
    else if (std::isinf(values[i]))
      code = values[i] > 0 ? numbers.most_code : -numbers.most_code;
    else
      code = static_cast<int>(std::clamp<double>(std::nearbyint(std::ldexp(values[i], -exponent_of(format, scale))), -most, most));
    put_code(format, block, i, code);
  }
}

Bytes encoded_plainly(BlockFormat format, const Bytes& in) {
  const std::size_t count = in.size() / sizeof(float);
  Bytes out(blocks_for(format, count) * block_bytes(format));
  for (std::size_t block = 0; block < blocks_for(format, count); ++block) {
    std::vector<double> values(block_elements(format));
    for (std::size_t i = 0; i < values.size(); ++i)
      if (const std::size_t at = block * values.size() + i; at < count) values[i] = element<float>(in, at);
    encode_plainly(format, out.data() + block * block_bytes(format), values);
  }
  return out;
}

Bytes decoded_plainly(BlockFormat format, const Bytes& in, std::size_t count) {
  const Numbers numbers = numbers_of(format);
  Bytes out(count * sizeof(float));
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* block = in.data() + i / block_elements(format) * block_bytes(format);
    const int scale = static_cast<int>(block[0]), code = code_at(format, block, i % block_elements(format));
    auto value = static_cast<float>(std::ldexp(code, exponent_of(format, scale)));
    if (scale >= kFirstSpecial && code == -numbers.most_code - 1) value = std::numeric_limits<float>::quiet_NaN();
    if (scale >= kFirstSpecial && std::abs(code) == numbers.most_code) value = std::copysign(INFINITY, static_cast<float>(code));
    set_element(out, i, value);
  }
  return out;
}

/// Elements of every sort: random bits with corner cases among them, or numbers of one size per block, also at the ends of f32's range and
/// at the middles between two codes.
Bytes make_floats(std::size_t count, Random& random) {
  if (random.below(4) == 0) return make_elements(DType::f32, count, random);
  Bytes values(count * sizeof(float));
  int exponent = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 32 == 0) exponent = random.below(4) == 0 ? static_cast<int>(random.below(276)) - 149 : static_cast<int>(random.below(40)) - 30;
    double fraction = static_cast<double>(random.below(1 << 25)) / (1 << 24) - 1;
    if (random.below(4) == 0) fraction = (static_cast<double>(random.below(513)) - 256) / 256;
    set_element(values, i, static_cast<float>(std::clamp(std::ldexp(fraction, exponent), -0x1.fffffep127, 0x1.fffffep127)));
    if (random.below(700) == 0) set_element(values, i, random.below(2) == 0 ? INFINITY : std::numeric_limits<float>::quiet_NaN());
  }
  return values;
}

std::vector<std::size_t> counts() {
  std::vector<std::size_t> all;
  for (std::size_t n = 0; n <= 200; ++n) all.push_back(n);
  for (std::size_t n : {255, 256, 257, 1'024, 4'099, 20'011}) all.push_back(n);
  return all;
}

template <class Visit>
void for_all_kernels(Visit visit) {
  for (const simd::Kernels* kernels : simd::available()) {
    for (const BlockFormat format : kFormats) {
      INFO(kernels->name() << ' ' << name_of(format));
      visit(*kernels, format);
    }
  }
}

}  // namespace

TEST_CASE("blocks have the bytes of a plain encoding, and the values of a plain decoding, on every target") {
  for_all_kernels([](const simd::Kernels& kernels, BlockFormat format) {
    Random random(31);
    for (const std::size_t count : counts()) {
      const Bytes values = make_floats(count, random);
      const Bytes expected = encoded_plainly(format, values);
      Placed in(values, random.below(kMaxShift)), out(Bytes(expected.size()), random.below(kMaxShift));
      kernels.encode(format)(out.data(), in.data(), count);
      if (out.elements() != expected || !out.guards_hold()) FAIL_CHECK("encode, " << count << " elements");
      Placed blocks(expected, random.below(kMaxShift)), decoded(Bytes(values.size()), random.below(kMaxShift));
      kernels.decode(format)(decoded.data(), blocks.data(), count);
      if (decoded.elements() != decoded_plainly(format, expected, count) || !decoded.guards_hold())
        FAIL_CHECK("decode, " << count << " elements");
    }
  });
}

TEST_CASE("every byte decodes to the same values on every target, also those that no rank sends") {
  for_all_kernels([](const simd::Kernels& kernels, BlockFormat format) {
    Random random(32);
    for (int scale = 0; scale < 256; ++scale) {
      Bytes block(block_bytes(format));
      for (int turn = 0; turn < 8; ++turn) {
        for (std::byte& byte : block) byte = static_cast<std::byte>(random.below(256));
        block[0] = static_cast<std::byte>(scale);
        block[1] = static_cast<std::byte>(turn == 0 ? 0x80 : turn == 1 ? 0x88 : turn == 2 ? 0x7f : 0x81);
        Bytes out(block_elements(format) * sizeof(float));
        kernels.decode(format)(out.data(), block.data(), block_elements(format));
        CAPTURE(scale, turn);
        REQUIRE(out == decoded_plainly(format, block, block_elements(format)));
      }
    }
  });
}

TEST_CASE("rounding to blocks leaves out at most half a step, keeps every NaN and infinity, and no other element becomes one") {
  for_all_kernels([](const simd::Kernels& kernels, BlockFormat format) {
    Random random(33);
    const Numbers numbers = numbers_of(format);
    for (int turn = 0; turn < 200; ++turn) {
      const std::size_t count = 1 + random.below(300);
      const Bytes values = make_floats(count, random);
      Bytes blocks(blocks_for(format, count) * block_bytes(format)), decoded(values.size());
      kernels.encode(format)(blocks.data(), values.data(), count);
      kernels.decode(format)(decoded.data(), blocks.data(), count);
      Placed left(Bytes(values.size()), random.below(kMaxShift)), in_place(values, random.below(kMaxShift));
      kernels.left_by(format)(left.data(), values.data(), blocks.data(), count);
      kernels.left_by(format)(in_place.data(), in_place.data(), blocks.data(), count);
      REQUIRE((left.guards_hold() && in_place.guards_hold() && left.elements() == in_place.elements()));
      for (std::size_t i = 0; i < count; ++i) {
        const auto value = element<float>(values, i), back = element<float>(decoded, i), rest = element<float>(left.elements(), i);
        const int scale = static_cast<int>(blocks[i / block_elements(format) * block_bytes(format)]);
        CAPTURE(i, value, back, scale);
        REQUIRE(std::isnan(value) == std::isnan(back));
        REQUIRE(std::isinf(value) == std::isinf(back));
        REQUIRE(std::isfinite(rest));
        if (!std::isfinite(value)) {
          REQUIRE((std::isnan(value) || value == back));
          REQUIRE(rest == 0);
          continue;
        }
        REQUIRE(rest == value - back);
        // Above the largest scale's last code there is no other one.
        const double reach = std::ldexp(scale < kFirstSpecial ? numbers.most_code : numbers.most_code - 1, numbers.most_exponent);
        if (std::abs(value) <= reach) REQUIRE(std::abs(static_cast<double>(rest)) <= std::ldexp(0.5, exponent_of(format, scale)));
      }
    }
  });
}

TEST_CASE("blocks have the golden bytes on every target of every machine") {
  constexpr std::uint64_t kGoldenBlocks[] = {0xd7d492efd8b9518e, 0x5a092e040102fe57};
  for_all_kernels([&](const simd::Kernels& kernels, BlockFormat format) {
    Random random(34);
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    const auto add = [&](const Bytes& bytes) {
      for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
    };
    for (int turn = 0; turn < 20; ++turn) {
      const std::size_t count = 700 + random.below(300);
      const Bytes values = make_floats(count, random);
      Bytes blocks(blocks_for(format, count) * block_bytes(format)), out(values.size());
      kernels.encode(format)(blocks.data(), values.data(), count);
      add(blocks);
      kernels.decode(format)(out.data(), blocks.data(), count);
      add(out);
      kernels.left_by(format)(out.data(), values.data(), blocks.data(), count);
      add(out);
    }
    CHECK(hash == kGoldenBlocks[static_cast<std::size_t>(format)]);
  });
}
