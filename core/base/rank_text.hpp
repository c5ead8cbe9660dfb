#pragma once

#include <cstdint>
#include <string>

namespace ringlet {

/// "rank 3", as error messages name a rank.
inline std::string rank_text(std::uint64_t rank) { return "rank " + std::to_string(rank); }

}  // namespace ringlet
