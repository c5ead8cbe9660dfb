#include "hashes.hpp"

#include <algorithm>

#include "corpus.hpp"

namespace train_text {

std::string different_hashes(std::span<const std::uint64_t> hashes, int steps) {
  // The most frequent hash is taken to be right. If there is a tie, the lowest rank's is taken.
  std::uint64_t usual = hashes[0];
  std::ptrdiff_t most = 0;
  for (const std::uint64_t hash : hashes) {
    const auto same = std::count(hashes.begin(), hashes.end(), hash);
    if (same <= most) continue;
    usual = hash;
    most = same;
  }
  std::string others;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) {
    if (hashes[rank] == usual) continue;
    others += (others.empty() ? "" : ", ") + std::to_string(rank) + " (" + in_hexadecimal(hashes[rank]) + ")";
  }
  if (others.empty()) return {};
  return "after " + std::to_string(steps) + " steps the parameters of rank " + others + " are not those of the other ranks (" +
         in_hexadecimal(usual) + "): it runs another build, or its memory or arithmetic is at fault";
}

std::vector<std::uint64_t> hashes_of(std::span<const EndOfRank> ranks) {
  std::vector<std::uint64_t> hashes;
  for (const EndOfRank& rank : ranks) hashes.push_back(rank.hash);
  return hashes;
}

}  // namespace train_text
