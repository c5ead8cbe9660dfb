#pragma once

#include <cstdint>
#include <string_view>

namespace ringlet {

/// XXH3's 64 bits: what ranks compare in place of long texts. The same on every machine.
std::uint64_t hash_of(std::string_view text);

}  // namespace ringlet
