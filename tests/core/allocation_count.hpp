#pragma once

#include <cstddef>

namespace ringlet::test {

inline constexpr std::size_t kLargeAllocation = 4 << 10;

/// How often a program takes memory with `new`.
struct Allocations {
  std::size_t all = 0;
  std::size_t large = 0;  // of kLargeAllocation bytes and more

  friend Allocations operator-(const Allocations& one, const Allocations& other) { return {one.all - other.all, one.large - other.large}; }
};
Allocations allocations_so_far();

}  // namespace ringlet::test
