#include "core/base/hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ringlet {

std::uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace ringlet
