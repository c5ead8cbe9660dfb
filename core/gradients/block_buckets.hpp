#pragma once

#include <cstdint>

namespace ringlet {

/// The most bytes of a bucket of blocks. Encoding takes a processor longer than a copy, and a slow network still longer than that. So such
/// buckets are small enough that one is encoded and another one decoded while a third is moved.
inline constexpr std::int64_t kMostBlockBytes = 2 << 20;

}  // namespace ringlet
