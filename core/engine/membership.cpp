#include "core/engine/membership.hpp"

#include <algorithm>
#include <utility>

namespace ringlet {

namespace {

/// A text for people names at most this many ranks and counts the others.
constexpr std::size_t kNamedRanks = 16;

std::string describe(const std::vector<Membership::Member>& members) {
  std::string text = members.size() == 1 ? " of the group of rank " : " of the group of ranks ";
  for (std::size_t i = 0; i < std::min(members.size(), kNamedRanks); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(members[i].world_rank);
  if (members.size() > kNamedRanks) text += " and " + std::to_string(members.size() - kNamedRanks) + " more";
  return text;
}

std::vector<Membership::Member> everyone(int world_size) {
  std::vector<Membership::Member> members;
  for (int rank = 0; rank < world_size; ++rank) members.push_back({rank, 0, 0});
  return members;
}

}  // namespace

Membership Membership::of_world(int world_size) { return {everyone(world_size), world_size, ""}; }

Membership::Membership(std::vector<Member> members, int world_size) : Membership(members, world_size, describe(members)) {}

Membership::Membership(std::vector<Member> members, int world_size, std::string suffix)
    : members_(std::move(members)), rank_of_(static_cast<std::size_t>(world_size), -1), suffix_(std::move(suffix)) {
  for (std::size_t rank = 0; rank < members_.size(); ++rank)
    rank_of_[static_cast<std::size_t>(members_[rank].world_rank)] = static_cast<std::int32_t>(rank);
}

std::optional<int> Membership::rank_of(int world_rank) const {
  if (world_rank < 0 || static_cast<std::size_t>(world_rank) >= rank_of_.size()) return std::nullopt;
  const int rank = rank_of_[static_cast<std::size_t>(world_rank)];
  return rank < 0 ? std::nullopt : std::optional(rank);
}

std::string Membership::name_of(int rank) const {
  const int in_world = world_rank(rank);
  const std::string name = "rank " + std::to_string(rank);
  return in_world == rank ? name : name + " (rank " + std::to_string(in_world) + " of the world)";
}

}  // namespace ringlet
