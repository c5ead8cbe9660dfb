#pragma once

#include <cstddef>
#include <vector>

#include "tests/core/sim_group.hpp"

namespace ringlet::test {

inline GroupSetup probes_setup(int natives, int guests) {
  GroupSetup setup;
  setup.size = natives + guests;
  setup.world.guests = guests;
  setup.paths = PathOptions::calm();
  return setup;
}

/// Returns what this rank would choose in its world, by kind and size.
inline std::vector<Algorithm> choices(const WorldOptions& own) {
  std::vector<Algorithm> chosen;
  for (std::size_t kind = 0; kind < kCollectiveKindCount; ++kind)
    for (std::size_t bytes = 1; bytes < std::size_t{1} << 30; bytes *= 3) {
      Call call;
      call.kind = static_cast<CollectiveKind>(kind);
      chosen.push_back(choose_algorithm(call, bytes, own.size, own.topology, own.limits, own.placement));
    }
  return chosen;
}

inline bool all_have_met(const SimGroup& group) {
  for (int rank = 0; rank < group.size(); ++rank)
    if (!group.met(rank)) return false;
  return true;
}

inline void start_all(SimGroup& group, int natives) {
  for (int rank = 0; rank < natives; ++rank) group.start_meeting(rank);
  for (int number = 0; number < group.size() - natives; ++number) group.start_guest(number);
}

}  // namespace ringlet::test
