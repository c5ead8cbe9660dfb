#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "core/plan/topology.hpp"

using namespace ringlet;

namespace {

std::vector<int> ring_from(const Topology& topology, int first, int size) {
  std::vector<int> ring;
  for (int offset = 0; offset < size; ++offset) ring.push_back(topology.along_ring(first, offset, size));
  return ring;
}

}  // namespace

TEST_CASE("without guests the ring is in rank order") {
  for (int size = 1; size <= 9; ++size) {
    for (const Topology& topology : {Topology(), Topology::of_world(size, 0)}) {
      CHECK_FALSE(topology.has_guests());
      CHECK(topology.guests() == 0);
      CHECK(topology.natives(size) == size);
      CHECK(topology.relayed_edges() == 0);
      for (int rank = 0; rank < size; ++rank) {
        CHECK(topology.index_among_natives(rank) == rank);
        for (int offset = -size; offset <= 2 * size; ++offset)
          REQUIRE(topology.along_ring(rank, offset, size) == (rank + offset + size) % size);
      }
    }
  }
}

TEST_CASE("the ring has every rank once and as few edges between guests as there can be") {
  for (int natives = 0; natives <= 8; ++natives) {
    for (int guests = 1; guests <= 12; ++guests) {
      CAPTURE(natives, guests);
      const int size = natives + guests;
      const Topology topology = Topology::of_world(size, guests);
      const auto ring = ring_from(topology, 0, size);
      REQUIRE(std::set<int>(ring.begin(), ring.end()).size() == static_cast<std::size_t>(size));
      int between_guests = 0;
      for (std::size_t place = 0; place < ring.size(); ++place)
        between_guests += topology.is_guest(ring[place]) && topology.is_guest(ring[(place + 1) % ring.size()]);
      CHECK(between_guests == (size == 1 ? 1 : std::max(guests - natives, 0)));
      CHECK(topology.relayed_edges() == between_guests);
      for (int rank = 0; rank < size; ++rank) {
        CHECK(topology.along_ring(topology.along_ring(rank, 1, size), -1, size) == rank);
        CHECK(topology.is_guest(rank) == (rank >= natives));
        CHECK(topology.index_among_natives(rank) == (rank < natives ? rank : -1));
      }
    }
  }
}

TEST_CASE("guests may have any ranks of a group") {
  const Topology topology(std::vector<bool>{true, false, true, false, false});
  CHECK(topology.guests() == 2);
  CHECK(topology.natives(5) == 3);
  CHECK(topology.index_among_natives(4) == 2);
  CHECK(topology.index_among_natives(2) == -1);
  CHECK(topology.relayed_edges() == 0);
  CHECK(ring_from(topology, 1, 5) == std::vector<int>{1, 3, 0, 4, 2});
}

TEST_CASE("machines are in the order of their lowest ranks, and count where one has several") {
  Topology topology;
  topology.set_machines({7, 3, 7, 3, 9}, {});
  REQUIRE(topology.has_shared_machines());
  CHECK(topology.machines() == 3);
  CHECK(topology.ranks_on(0) == std::vector<int>{0, 2});
  CHECK(topology.ranks_on(1) == std::vector<int>{1, 3});
  CHECK(topology.ranks_on(2) == std::vector<int>{4});
  for (int rank = 0; rank < 5; ++rank) CHECK(topology.machine_of(rank) == (rank == 4 ? 2 : rank % 2));
  for (const auto& machines : {std::vector<int>{}, {5}, {1, 2, 3}, {4, 4, 4}}) {
    topology.set_machines(machines, {});
    CHECK_FALSE(topology.has_shared_machines());
  }
}
