#include "core/elastic/survivors.hpp"

#include <algorithm>

namespace ringlet {

Survivors::Survivors(const std::vector<bool>& votes, int self) : ranks_(votes.size()), self_(self) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank].votes = votes[rank];
}

int Survivors::first() const {
  for (int rank = 0; rank < size(); ++rank)
    if (at(rank).votes && !at(rank).lost) return rank;
  return self_;
}

bool Survivors::is_last() const {
  return std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.votes && !rank.lost; }) <= 1;
}

std::vector<int> Survivors::unproved() const {
  std::vector<int> found;
  for (int rank = 0; rank < size(); ++rank)
    if (at(rank).votes && at(rank).lost && !at(rank).dead) found.push_back(rank);
  return found;
}

bool Survivors::all_have_reported() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.lost || rank.absent || rank.reported; });
}

bool Survivors::all_voters_have_accepted() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.lost || rank.absent || !rank.votes || rank.accepted; });
}

std::vector<std::uint32_t> Survivors::present() const {
  std::vector<std::uint32_t> found;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_[rank].reported && !ranks_[rank].lost && !ranks_[rank].absent) found.push_back(static_cast<std::uint32_t>(rank));
  return found;
}

std::vector<std::uint32_t> Survivors::connected() const {
  std::vector<std::uint32_t> members = present();
  const auto is_broken = [&](std::uint32_t one, std::uint32_t other) {
    const int a = static_cast<int>(one), b = static_cast<int>(other);
    return one != other && !(hears(a, b) && hears(b, a));
  };
  std::vector<std::size_t> broken(ranks_.size());
  for (const std::uint32_t one : members)
    for (const std::uint32_t other : members) broken[one] += is_broken(one, other);
  while (!members.empty()) {
    // The last of equals is the highest rank.
    const auto worst = std::max_element(members.begin(), members.end(), [&](auto one, auto other) { return broken[one] <= broken[other]; });
    if (broken[*worst] == 0) break;
    const std::uint32_t dropped = *worst;
    members.erase(worst);
    for (const std::uint32_t other : members) broken[other] -= is_broken(dropped, other);
  }
  return members;
}

bool Survivors::is_quorum_of_reports() const {
  std::vector<bool> chosen;
  for (const Rank& rank : ranks_) chosen.push_back(rank.reported);
  return is_quorum(chosen);
}

bool Survivors::is_quorum_of_acceptances() const {
  std::vector<bool> chosen;
  for (const Rank& rank : ranks_) chosen.push_back(rank.accepted);
  return is_quorum(chosen);
}

bool Survivors::is_quorum(const std::vector<std::uint32_t>& members) const {
  std::vector<bool> chosen(ranks_.size());
  for (const std::uint32_t rank : members) chosen[rank] = true;
  return is_quorum(chosen);
}

/// A majority of the voters, or all of them except those that are proved dead. In the latter case their last messages must not reach any of
/// `chosen` any more: a majority of the dead may have decided otherwise, and a message of theirs may still be under way.
bool Survivors::is_quorum(const std::vector<bool>& chosen) const {
  std::size_t votes = 0, voters = 0;
  for (std::size_t rank = 0; rank < chosen.size(); ++rank) {
    if (!ranks_[rank].votes) continue;
    ++voters;
    if (chosen[rank]) ++votes;
  }
  if (votes > voters / 2) return true;
  for (int missing = 0; missing < size(); ++missing) {
    if (!at(missing).votes || chosen[static_cast<std::size_t>(missing)]) continue;
    if (!at(missing).dead) return false;
    for (int rank = 0; rank < size(); ++rank)
      if (chosen[static_cast<std::size_t>(rank)] && at(rank).votes && !at(rank).dead && hears(rank, missing)) return false;
  }
  return true;
}

/// This rank and one that has reported hear each other: otherwise the report had not come.
bool Survivors::hears(int rank, int peer) const {
  if (rank == self_) return !at(peer).lost;
  if (peer == self_) return true;
  return at(rank).hears.empty() || at(rank).hears[static_cast<std::size_t>(peer)];
}

void Survivors::end_ballot() {
  for (Rank& rank : ranks_) {
    rank.reported = rank.accepted = rank.absent = false;
    rank.hears.clear();
  }
}

void Survivors::append_to(std::string& bytes) const {
  bytes.push_back(static_cast<char>(self_));
  for (const Rank& rank : ranks_) {
    for (const bool flag : {rank.votes, rank.lost, rank.dead, rank.reported, rank.accepted, rank.absent, rank.hears.empty()})
      bytes.push_back(flag ? '1' : '0');
    for (const bool flag : rank.hears) bytes.push_back(flag ? '1' : '0');
  }
}

}  // namespace ringlet
