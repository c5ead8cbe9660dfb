#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ringlet {

/// The name of a rank in error messages: "rank 3".
inline std::string rank_text(std::uint64_t rank) { return "rank " + std::to_string(rank); }

/// The names of several ranks: "rank 3, 5, 8"; empty if there are none.
inline std::string ranks_text(std::span<const int> ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "rank " : ", ") + std::to_string(rank);
  return text;
}

}  // namespace ringlet
