#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ringlet {

/// Returns the product of the extents times `element_bytes`, or nothing if an extent is negative or the product exceeds half the address
/// space.
inline std::optional<std::size_t> checked_bytes(std::span<const std::int64_t> extents, std::size_t element_bytes) {
  constexpr std::size_t kLimit = SIZE_MAX / 2;
  std::size_t product = element_bytes;
  bool empty = false;
  for (const auto extent : extents) {
    if (extent < 0) return std::nullopt;
    // An extent has 64 bits even where std::size_t has fewer, so the comparison is done in 64 bits.
    if (extent == 0)
      empty = true;
    else if (static_cast<std::uint64_t>(extent) > kLimit / product)
      return std::nullopt;
    else
      product *= static_cast<std::size_t>(extent);
  }
  return empty ? 0 : product;
}

}  // namespace ringlet
