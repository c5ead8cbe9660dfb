#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ringlet {

/// The members of a group, and the number by which each member knows the group. A value type.
class Membership {
 public:
  struct Member {
    int world_rank = 0;
    std::uint32_t group_id = 0;  // the number by which that rank knows the group; frames to it carry it
    std::uint32_t serial = 0;    // that rank's count of the groups for which it has reserved a number; 0: the group of all ranks
  };

  /// The group of all ranks, numbered as in the world; every rank knows it as group 0.
  static Membership of_world(int world_size);
  /// A group of some ranks of a world. `members` is in the order of the ranks in the group.
  Membership(std::vector<Member> members, int world_size);

  int size() const { return static_cast<int>(members_.size()); }
  int world_rank(int rank) const { return members_[static_cast<std::size_t>(rank)].world_rank; }
  std::uint32_t group_id(int rank) const { return members_[static_cast<std::size_t>(rank)].group_id; }
  /// A number that all members know, and that the world never gives to another group; 0 for the group of all ranks.
  std::uint64_t key() const { return (static_cast<std::uint64_t>(world_rank(0)) << 32) | members_[0].serial; }
  /// The rank in the group of a rank of the world; nothing if it is not in the group, or there is no such rank.
  std::optional<int> rank_of(int world_rank) const;

  /// A member's name for texts: "rank 1", or "rank 1 (rank 5 of the world)" where the two differ.
  std::string name_of(int rank) const;
  /// A suffix for names in texts: "" for the world, otherwise such as " of the group of ranks 1, 3, 5", in the world's numbers.
  const std::string& suffix() const { return suffix_; }

 private:
  Membership(std::vector<Member> members, int world_size, std::string suffix);

  std::vector<Member> members_;        // by rank in the group
  std::vector<std::int32_t> rank_of_;  // by rank in the world; -1: not a member
  std::string suffix_;
};

}  // namespace ringlet
