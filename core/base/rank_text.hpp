#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ringlet {

/// "rank 3", as error messages name a rank.
inline std::string rank_text(std::uint64_t rank) { return "rank " + std::to_string(rank); }

/// "rank 3, 5, 8"; nothing where there are none.
inline std::string ranks_text(std::span<const int> ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "rank " : ", ") + std::to_string(rank);
  return text;
}

}  // namespace ringlet
