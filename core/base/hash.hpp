#pragma once

#include <cstdint>
#include <string_view>

namespace ringlet {

/// The 64-bit XXH3 hash, which ranks compare in place of long texts. It is the same on every machine.
std::uint64_t hash_of(std::string_view text);

}  // namespace ringlet
