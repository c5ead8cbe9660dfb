#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace train_text {

/// Which ranks' parameters, given by their hashes, are not those of most ranks after `steps` steps, in a sentence; empty if all are alike.
std::string different_hashes(std::span<const std::uint64_t> hashes, int steps);

/// What a rank says at the end of a run in which it took steps alone.
struct EndOfRank {
  std::uint64_t hash = 0;     // of its parameters
  std::uint64_t samples = 0;  // that it has computed
};
inline constexpr std::size_t kEndNumbers = 2;
static_assert(sizeof(EndOfRank) == kEndNumbers * sizeof(std::uint64_t));

std::vector<std::uint64_t> hashes_of(std::span<const EndOfRank> ranks);

}  // namespace train_text
