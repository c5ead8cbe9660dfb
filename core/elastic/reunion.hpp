#pragma once

#include <cstdint>
#include <span>

#include "core/elastic/agreement.hpp"

namespace ringlet {

/// What a rank of an epoch that has ended knows of another native one whose process has not certainly ended.
struct OtherRank {
  int rank = 0;
  bool is_heard = false;      // this rank has not lost it
  bool has_lost_own = false;  // it has said that it has lost this rank
  bool has_left = false;      // it has said goodbye
};

/// Whether this rank makes way by its goodbye, which is a proof, for living ranks that have lost it: where they hear each other again, or
/// still, all would wait. One that has lost nobody stood still, and they did not. Others make way for lower ranks alone, so the lowest of
/// all that have ever lost one another stays, whatever they learn and when.
bool makes_way(int own_rank, std::span<const OtherRank> others);

/// Of two parts of the ranks of an epoch of this lineage that have gone on by themselves: whether `one` stays, and `other` ends its world
/// and joins that. The part with a quorum stays, then the larger one, then the one with the lowest rank.
bool has_better_claim(const Agreement::Outcome& one, const Agreement::Outcome& other, std::uint64_t lineage);

}  // namespace ringlet
