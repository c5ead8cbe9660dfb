#pragma once

#include <ringlet/wire.hpp>

#include "simd/lanes.hpp"

// f32 in blocks for the network (BlockFormat). A block is a byte, from which the scale 2^e follows, and one code c per element, which
// stands for c * 2^e. Scales and products are exact, so the only rounding is that of an element to its code, to nearest even.
namespace ringlet::simd {
namespace {

template <BlockFormat format>
struct BlockTraits {
  static constexpr std::size_t kElements = block_elements(format);
  static constexpr std::size_t kBytes = block_bytes(format);
  static constexpr int kMagnitudeBits = static_cast<int>(ringlet::detail::kBlockFormats[static_cast<std::size_t>(format)].code_bits) - 1;
  static constexpr int kMostCode = (1 << kMagnitudeBits) - 1;

  // Bytes below kScales stand for the exponents from kLeastExponent to kMostExponent; smaller elements become 0, which below 2^-66 is no
  // loss. All other bytes mean that the block has a NaN or an infinity, and stand for every fourth exponent. In such a block the outermost
  // codes are these, so that its finite elements keep to those between.
  static constexpr int kScales = 192;
  static constexpr int kMostExponent = 128 - kMagnitudeBits;
  static constexpr int kLeastExponent = kMostExponent - kScales + 1;
  static constexpr int kSpecialScales = kScales / 4;
  static constexpr int kNan = -kMostCode - 1, kInfinity = kMostCode;
  static constexpr int special_exponent(int number) { return kLeastExponent + 3 + 4 * number; }
};

inline float power_of_two(int exponent) { return bits_as<float>(static_cast<std::uint32_t>(exponent + 127) << 23); }

/// Rounds to nearest even; the magnitude must be below 2^22.
inline std::int32_t nearest(float value) {
  constexpr float kShift = 0x1.8p23F;
  return bits_as<std::int32_t>(value + kShift) - bits_as<std::int32_t>(kShift);
}

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
constexpr std::uint64_t in_each_byte(std::uint8_t value) { return value * 0x0101'0101'0101'0101ULL; }

template <BlockFormat format>
inline void store_codes(std::byte* out, const std::int8_t (&codes)[BlockTraits<format>::kElements]) {
  if constexpr (format == BlockFormat::int8) {
    std::memcpy(out, codes, sizeof codes);
  } else {
    // Byte i has the codes of elements i and i + 16, so that words of eight bytes need no shuffle.
    std::uint64_t words[sizeof codes / kWordBytes];
    std::memcpy(words, codes, sizeof words);
    for (std::size_t i = 0; i < 2; ++i) store(out, i, (words[i] & in_each_byte(0x0f)) | ((words[i + 2] & in_each_byte(0x0f)) << 4));
  }
}

/// Calls `take(element, code)` for the codes of a block.
template <BlockFormat format, class Take>
inline void each_code(const std::byte* in, Take take) {
  if constexpr (format == BlockFormat::int8) {
    RINGLET_BLOCK_LOOP
    for (std::size_t i = 0; i < BlockTraits<format>::kElements; ++i) take(i, static_cast<std::int32_t>(load<std::int8_t>(in, i)));
  } else {
    constexpr std::size_t kHalf = BlockTraits<format>::kElements / 2;
    RINGLET_SHORT_LOOP
    for (std::size_t i = 0; i < kHalf; ++i) take(i, static_cast<std::int32_t>((load<std::uint8_t>(in, i) & 0x0fU) ^ 8U) - 8);
    RINGLET_SHORT_LOOP
    for (std::size_t i = 0; i < kHalf; ++i) take(i + kHalf, (load<std::uint8_t>(in, i) >> 4 ^ 8) - 8);
  }
}

/// Encodes a block with a NaN or an infinity, or with finite elements that no scale reaches, which get the outermost code.
template <BlockFormat format>
__attribute__((noinline)) void encode_rare_block(std::byte* out, const std::byte* in) {
  using B = BlockTraits<format>;
  std::uint32_t largest = 0;
  bool special = false;
  RINGLET_RARE_LOOP
  for (std::size_t i = 0; i < B::kElements; ++i) {
    const std::uint32_t magnitude = magnitude_of<float>(load<std::uint32_t>(in, i));
    const bool finite = magnitude < Format<float>::kInfinity;
    special |= !finite;
    if (finite && largest < magnitude) largest = magnitude;
  }
  const int most = special ? B::kMostCode - 1 : B::kMostCode;
  int exponent = B::kMostExponent, scale = B::kScales - 1;
  if (special) {
    int number = 0;
    const auto too_small = [&] {
      return bits_as<float>(largest) >= (static_cast<float>(most) + 0.5F) * power_of_two(B::special_exponent(number));
    };
    while (number < B::kSpecialScales - 1 && too_small()) ++number;
    exponent = B::special_exponent(number);
    scale = B::kScales + number;
  }
  const float inverse = power_of_two(-exponent);
  std::int8_t codes[B::kElements];
  RINGLET_RARE_LOOP
  for (std::size_t i = 0; i < B::kElements; ++i) {
    const auto bits = load<std::uint32_t>(in, i);
    const std::uint32_t magnitude = magnitude_of<float>(bits);
    int code = 0;
    if (magnitude > Format<float>::kInfinity) {
      code = B::kNan;
    } else if (magnitude == Format<float>::kInfinity) {
      code = bits == magnitude ? B::kInfinity : -B::kInfinity;
    } else {
      code = nearest(bits_as<float>(bits) * inverse);
      code = code > most ? most : code < -most ? -most : code;
    }
    codes[i] = static_cast<std::int8_t>(code);
  }
  out[0] = static_cast<std::byte>(scale);
  store_codes<format>(out + 1, codes);
}

template <class Arch, BlockFormat format>
inline void encode_block(std::byte* out, const std::byte* in) {
  using B = BlockTraits<format>;
  std::uint32_t largest = 0;
  RINGLET_BLOCK_LOOP
  for (std::size_t i = 0; i < B::kElements; ++i) {
    const std::uint32_t magnitude = magnitude_of<float>(load<std::uint32_t>(in, i));
    largest = largest < magnitude ? magnitude : largest;
  }
  // Half a step is added, which carries into the exponent where the largest element would round to one code too many.
  const std::uint32_t reached = largest + (1U << (23 - B::kMagnitudeBits));
  if (reached >= Format<float>::kInfinity) return encode_rare_block<format>(out, in);
  const int wanted = static_cast<int>(reached >> 23) - 127 - (B::kMagnitudeBits - 1);
  const int exponent = wanted < B::kLeastExponent ? B::kLeastExponent : wanted;
  const float inverse = power_of_two(-exponent);
  std::int8_t codes[B::kElements];
  RINGLET_BLOCK_LOOP
  for (std::size_t i = 0; i < B::kElements; ++i) codes[i] = static_cast<std::int8_t>(nearest(load<float>(in, i) * inverse));
  out[0] = static_cast<std::byte>(exponent - B::kLeastExponent);
  store_codes<format>(out + 1, codes);
}

template <BlockFormat format>
__attribute__((noinline)) void decode_rare_block(std::byte* out, const std::byte* in) {
  using B = BlockTraits<format>;
  const int number = static_cast<int>(in[0]) - B::kScales;
  // A peer may send any byte.
  const float scale = power_of_two(B::special_exponent(number < B::kSpecialScales ? number : B::kSpecialScales - 1));
  each_code<format>(in + 1, [&](std::size_t i, std::int32_t code) {
    std::uint32_t bits = bits_as<std::uint32_t>(static_cast<float>(code) * scale);
    if (code == B::kNan) bits = Format<float>::kQuietNan;
    if (code == B::kInfinity) bits = Format<float>::kInfinity;
    if (code == -B::kInfinity) bits = Format<float>::kInfinity | 0x8000'0000U;
    store(out, i, bits);
  });
}

template <class Arch, BlockFormat format>
inline void decode_block(std::byte* out, const std::byte* in) {
  using B = BlockTraits<format>;
  const int scale_byte = static_cast<int>(in[0]);
  if (scale_byte >= B::kScales) return decode_rare_block<format>(out, in);
  const float scale = power_of_two(B::kLeastExponent + scale_byte);
  each_code<format>(in + 1, [&](std::size_t i, std::int32_t code) { store(out, i, static_cast<float>(code) * scale); });
}

// The last block, which may be filled in part, is handled in the same place as the others, because each copy of the loops counts in the
// size of the npm package.

template <class Arch, BlockFormat format>
void encode_blocks(std::byte* out, const std::byte* in, std::size_t count) {
  using B = BlockTraits<format>;
  std::byte filled_up[B::kElements * sizeof(float)]{};
  while (count > 0) {
    const std::size_t filled = count < B::kElements ? count : B::kElements;
    const std::byte* from = in;
    if (filled < B::kElements) {
      std::memcpy(filled_up, in, filled * sizeof(float));
      from = filled_up;
    }
    encode_block<Arch, format>(out, from);
    count -= filled;
    in += filled * sizeof(float);
    out += B::kBytes;
  }
}

template <class Arch, BlockFormat format>
void decode_blocks(std::byte* out, const std::byte* in, std::size_t count) {
  using B = BlockTraits<format>;
  std::byte whole[B::kElements * sizeof(float)];
  while (count > 0) {
    const std::size_t filled = count < B::kElements ? count : B::kElements;
    std::byte* const to = filled < B::kElements ? whole : out;
    decode_block<Arch, format>(to, in);
    if (to == whole) std::memcpy(out, whole, filled * sizeof(float));
    count -= filled;
    in += B::kBytes;
    out += filled * sizeof(float);
  }
}

/// left[i] = values[i] - decoded[i], and 0 where that is no finite number.
template <class Arch, BlockFormat format>
void blocks_leave(std::byte* left, const std::byte* values, const std::byte* blocks, std::size_t count) {
  using B = BlockTraits<format>;
  std::byte decoded[B::kElements * sizeof(float)];
  while (count > 0) {
    const std::size_t filled = count < B::kElements ? count : B::kElements;
    decode_block<Arch, format>(decoded, blocks);
    RINGLET_BLOCK_LOOP
    for (std::size_t i = 0; i < filled; ++i) {
      const auto bits = bits_as<std::uint32_t>(load<float>(values, i) - load<float>(decoded, i));
      store(left, i, magnitude_of<float>(bits) < Format<float>::kInfinity ? bits : 0U);
    }
    count -= filled;
    left += filled * sizeof(float);
    values += filled * sizeof(float);
    blocks += B::kBytes;
  }
}

}  // namespace
}  // namespace ringlet::simd
