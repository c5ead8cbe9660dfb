#include "core/rendezvous/link_table.hpp"

namespace ringlet {

LinkTable::LinkTable(int size, int own_rank) : linked_(static_cast<std::size_t>(size)) { confirm(own_rank); }

std::vector<int> LinkTable::missing(int ranks) const {
  std::vector<int> found;
  for (int rank = 0; rank < ranks; ++rank)
    if (!has(rank)) found.push_back(rank);
  return found;
}

}  // namespace ringlet
