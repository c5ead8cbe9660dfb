#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringlet {

/// What one rank knows of all ranks of an epoch that has ended, and which of them may decide on the next epoch. A value type.
class Survivors {
 public:
  // Losses and proofs are for ever; the other fields are about this rank's own ballot.
  struct Rank {
    bool votes = false, lost = false, dead = false;
    bool reported = false, accepted = false;
    bool absent = false;        // does not take part in the ballot
    std::vector<bool> hears{};  // as it has reported
    friend bool operator==(const Rank&, const Rank&) = default;
  };

  Survivors(const std::vector<bool>& votes, int self);

  int size() const { return static_cast<int>(ranks_.size()); }
  bool exists(int rank) const { return rank >= 0 && rank < size(); }
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& self() const { return at(self_); }

  /// The lowest voter that is not lost; this rank itself if there is none.
  int first() const;
  /// Whether no voter is left but this one.
  bool is_last() const;
  /// The lost voters that are not proved dead.
  std::vector<int> unproved() const;

  /// Whether all that are neither lost nor absent have reported.
  bool all_have_reported() const;
  bool all_voters_have_accepted() const;
  /// Those that have reported and are not lost, ascending.
  std::vector<std::uint32_t> present() const;
  /// Those of them that hear each other. The rank with the most broken links is dropped first, of equals the highest.
  std::vector<std::uint32_t> connected() const;

  bool is_quorum_of_reports() const;
  bool is_quorum_of_acceptances() const;
  bool is_quorum(const std::vector<std::uint32_t>& members) const;

  /// Forgets what belongs to one ballot.
  void end_ballot();
  /// Appends all of the state to `bytes`.
  void append_to(std::string& bytes) const;

  friend bool operator==(const Survivors&, const Survivors&) = default;

 private:
  bool is_quorum(const std::vector<bool>& chosen) const;
  bool hears(int rank, int peer) const;

  std::vector<Rank> ranks_;
  int self_;
};

}  // namespace ringlet
