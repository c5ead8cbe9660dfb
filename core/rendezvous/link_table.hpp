#pragma once

#include <vector>

namespace ringlet {

/// The ranks with which this one has a link that both sides have agreed on.
class LinkTable {
 public:
  LinkTable(int size, int own_rank);

  void confirm(int rank) { linked_[static_cast<std::size_t>(rank)] = true; }
  /// The link with this rank is to be replaced by a faster one.
  void expect_another(int rank) { linked_[static_cast<std::size_t>(rank)] = false; }
  /// Whether there is a link with this rank; true for the own rank.
  bool has(int rank) const { return linked_[static_cast<std::size_t>(rank)]; }
  bool complete() const { return missing(static_cast<int>(linked_.size())).empty(); }
  /// Those of the first `ranks` ranks with which there is no link.
  std::vector<int> missing(int ranks) const;

 private:
  std::vector<bool> linked_;  // by rank
};

}  // namespace ringlet
