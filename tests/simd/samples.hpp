#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ringlet/dtype.hpp>
#include <vector>

namespace ringlet::test {

/// A sequence of 64-bit numbers that is the same on every machine (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }

 private:
  std::uint64_t state_;
};

using Bytes = std::vector<std::byte>;

template <class T>
T element(const Bytes& bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof value);
  return value;
}

template <class T>
void set_element(Bytes& bytes, std::size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof value);
}

inline std::vector<DType> dtypes_that(bool (*belong)(DType) noexcept) {
  std::vector<DType> all;
  for (const auto& facts : ringlet::detail::kDTypes)
    if (belong(facts.dtype)) all.push_back(facts.dtype);
  return all;
}

/// Returns elements of every sort: random bits, numbers of ordinary size, and the format's corner cases, several of them close together.
Bytes make_elements(DType dtype, std::size_t count, Random& random);

/// Every pair of the dtype's corner cases: a[i], b[i].
struct Pairs {
  Bytes a, b;
  std::size_t count;
};
Pairs make_corner_pairs(DType dtype);

/// Gives every NaN (complex dtypes: every NaN part) one pattern.
void canonicalise(DType dtype, Bytes& elements);

/// Returns the index of the first element whose bits differ, NaN being equal to NaN; `count` if there is none.
std::size_t first_difference(DType dtype, Bytes left, Bytes right);

}  // namespace ringlet::test
