#include "tests/simd/samples.hpp"

#include <algorithm>

namespace ringlet::test {
namespace {

/// Returns the corner cases of the format's real parts as bit patterns; for integers the extremes and the values around zero.
std::vector<std::uint64_t> corner_cases(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x3c00, 0xbc00,
              0x3c01, 0x3555, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01};
    case DType::bf16:
      return {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x8080, 0x3f80, 0xbf80, 0x3f81,
              0x3eab, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81, 0x7fff};
    case DType::f32:
    case DType::complex64:
      return {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x3f800000, 0xbf800000,
              0x3f800001, 0x3eaaaaab, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001};
    case DType::f64:
    case DType::complex128:
      return {0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000,
              0x3ff0000000000000, 0xbff0000000000000, 0x3ff0000000000001, 0x3fd5555555555555, 0x7fefffffffffffff, 0xffefffffffffffff,
              0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001};
    default: {
      const std::uint64_t top = std::uint64_t{1} << (8 * size_of(dtype) - 1);
      return {0, 1, 2, 3, top - 1, top, top + 1, top + top - 1, top + top - 2, 0x5555555555555555};
    }
  }
}

/// Returns a number between -4 and 4 in the format.
std::uint64_t ordinary(DType dtype, Random& random) {
  const double value = (static_cast<double>(random.below(8'000'001)) - 4'000'000) / 1'000'000;
  const auto bits_of = [](auto number, auto bits) {
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
  };
  const std::uint32_t single = bits_of(static_cast<float>(value), std::uint32_t{});
  switch (dtype) {
    case DType::f16: {
      // These are powers of two from 2^-8 to 2^7 with random fractions.
      const std::uint64_t bits = random.next();
      return (bits & 0x83ff) | ((7 + bits / 65536 % 16) << 10);
    }
    case DType::bf16:
      return single >> 16;
    case DType::f32:
    case DType::complex64:
      return single;
    case DType::f64:
    case DType::complex128:
      return bits_of(value, std::uint64_t{});
    default:
      return random.below(16);
  }
}

/// Complex numbers consist of two parts that are drawn one by one.
std::size_t part_bytes(DType dtype) { return size_of(part_dtype(dtype)); }

void put(Bytes& bytes, std::size_t index, std::size_t size, std::uint64_t bits) {
  for (std::size_t i = 0; i < size; ++i) bytes[index * size + i] = static_cast<std::byte>(bits >> (8 * i));
}

std::uint64_t get(const Bytes& bytes, std::size_t index, std::size_t size) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < size; ++i) bits |= std::to_integer<std::uint64_t>(bytes[index * size + i]) << (8 * i);
  return bits;
}

std::uint64_t infinity_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 0x7c00;
    case DType::bf16:
      return 0x7f80;
    case DType::f64:
    case DType::complex128:
      return 0x7ff0000000000000;
    default:
      return 0x7f800000;
  }
}

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Bytes make_elements(DType dtype, std::size_t count, Random& random) {
  const std::size_t size = part_bytes(dtype), parts = count * (size_of(dtype) / size);
  const std::vector<std::uint64_t> corners = corner_cases(dtype);
  Bytes bytes(parts * size);
  for (std::size_t i = 0; i < parts; ++i) {
    switch (random.below(4)) {
      case 0:
        put(bytes, i, size, random.next());
        break;
      case 1:
        put(bytes, i, size, corners[random.below(corners.size())]);
        break;
      default:
        put(bytes, i, size, ordinary(dtype, random));
        break;
    }
  }
  return bytes;
}

Pairs make_corner_pairs(DType dtype) {
  const std::size_t size = part_bytes(dtype), parts = size_of(dtype) / size;
  const std::vector<std::uint64_t> corners = corner_cases(dtype);
  const std::size_t kinds = parts == 1 ? corners.size() : corners.size() * corners.size();
  Pairs pairs{Bytes(kinds * kinds * size_of(dtype)), Bytes(kinds * kinds * size_of(dtype)), kinds * kinds};
  for (std::size_t i = 0; i < kinds * kinds; ++i) {
    for (std::size_t part = 0, left = i / kinds, right = i % kinds; part < parts; ++part) {
      put(pairs.a, i * parts + part, size, corners[left % corners.size()]);
      put(pairs.b, i * parts + part, size, corners[right % corners.size()]);
      left /= corners.size();
      right /= corners.size();
    }
  }
  return pairs;
}

void canonicalise(DType dtype, Bytes& elements) {
  if (!is_floating(dtype)) return;
  const std::size_t size = part_bytes(dtype);
  const std::uint64_t infinity = infinity_of(dtype), sign = std::uint64_t{1} << (8 * size - 1);
  for (std::size_t i = 0; i < elements.size() / size; ++i) {
    if ((get(elements, i, size) & ~sign) > infinity) put(elements, i, size, sign - 1);
  }
}

std::size_t first_difference(DType dtype, Bytes left, Bytes right) {
  canonicalise(dtype, left);
  canonicalise(dtype, right);
  const auto [at, _] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  return static_cast<std::size_t>(at - left.begin()) / size_of(dtype);
}

}  // namespace ringlet::test
