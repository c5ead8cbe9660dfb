#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ringlet {

/// The name of a rank in error messages: "rank 3".
inline std::string rank_text(std::uint64_t rank) { return "rank " + std::to_string(rank); }

/// A list in a message names so many; of more it says how many they are.
inline constexpr std::size_t kMostNamed = 8;

/// What follows the names of a list of `count`: " and 5 more", or nothing.
inline std::string more_text(std::size_t count) { return count > kMostNamed ? " and " + std::to_string(count - kMostNamed) + " more" : ""; }

/// The names of several ranks: "rank 3, 5, 8", or the first of them, "rank 0, 1, 2, 3, 4, 5, 6, 7 and 5 more"; empty if there are none.
inline std::string ranks_text(std::span<const int> ranks) {
  std::string text;
  for (const int rank : ranks.first(std::min(ranks.size(), kMostNamed))) text += (text.empty() ? "rank " : ", ") + std::to_string(rank);
  return text + more_text(ranks.size());
}

}  // namespace ringlet
