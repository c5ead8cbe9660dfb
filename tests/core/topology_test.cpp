#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>
#include <vector>

#include "core/plan/topology.hpp"
#include "sim/sim_random.hpp"

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

namespace {

/// Returns the time of the slowest of `speeds.size()` ranks among `size` for one buffer, given the owners' weights.
double slowest(const std::vector<std::uint32_t>& speeds, const std::vector<std::uint32_t>& weights, int size) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double longest = 0;
  for (std::size_t rank = 0; rank < speeds.size(); ++rank)
    longest = std::max(longest, (1 + (size - 2) * weights[rank] / total) / (static_cast<double>(speeds[rank]) / kFullSpeed));
  return longest;
}

}  // namespace

TEST_CASE("a rank of half the others' speed or less owns nothing, and equal ranks own equal parts") {
  for (int size = 3; size <= 64; ++size) {
    for (const std::uint32_t speed : {1u, 91u, 256u, 512u}) {
      std::vector<std::uint32_t> speeds(static_cast<std::size_t>(size), kFullSpeed);
      speeds[1] = speed;
      const auto weights = weights_of_owners(speeds, size);
      CHECK(weights[1] == 0);
      for (std::size_t rank = 2; rank < speeds.size(); ++rank) CHECK(weights[rank] == weights[0]);
      // It takes the time for one buffer, which is the least, since it has to send and receive that.
      CHECK(slowest(speeds, weights, size) == Approx(static_cast<double>(kFullSpeed) / speed));
    }
    const std::vector<std::uint32_t> equal(static_cast<std::size_t>(size), 300);
    CHECK(weights_of_owners(equal, size) == std::vector<std::uint32_t>(equal.size(), kFullSpeed));
  }
  CHECK(weights_of_owners(std::vector<std::uint32_t>{1024, 1}, 2) == std::vector<std::uint32_t>{1, 1});
}

TEST_CASE("no other division of a buffer is faster for ranks of any speeds") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimRandom random(seed);
    const auto owners = static_cast<std::size_t>(1 + random.below(8));
    const int size = static_cast<int>(std::max<std::size_t>(owners + random.below(3), 3));
    std::vector<std::uint32_t> speeds;
    for (std::size_t rank = 0; rank < owners; ++rank) speeds.push_back(static_cast<std::uint32_t>(1 + random.below(kFullSpeed)));
    const auto weights = weights_of_owners(speeds, size);
    CAPTURE(seed, owners, size);
    REQUIRE(*std::max_element(weights.begin(), weights.end()) == kFullSpeed);
    const double ours = slowest(speeds, weights, size);
    for (std::size_t a = 0; a < owners; ++a) {
      for (std::size_t b = 0; b < owners; ++b) {
        // A faster rank never owns less.
        if (speeds[a] >= speeds[b]) CHECK(weights[a] >= weights[b]);
        auto others = weights;
        const std::uint32_t moved = std::min<std::uint32_t>(others[a], 1 + static_cast<std::uint32_t>(random.below(200)));
        others[a] -= moved;
        others[b] += moved;
        // The weights are whole numbers, whose rounding costs a little.
        CHECK(slowest(speeds, others, size) >= ours * 0.99);
      }
    }
  }
}

TEST_CASE("guests' speeds do not matter, and speeds matter only where natives differ") {
  Topology topology = Topology::of_world(5, 2);
  topology.set_speeds(std::vector<std::uint32_t>{1024, 1024, 1024, 5, 7});
  CHECK_FALSE(topology.has_speeds());
  CHECK(topology.owners(5) == 3);
  topology.set_speeds(std::vector<std::uint32_t>{1024, 128, 1024, 5, 7});
  REQUIRE(topology.has_speeds());
  CHECK(topology.owners(5) == 2);
  CHECK(topology.index_among_owners(0) == 0);
  CHECK(topology.index_among_owners(1) == -1);
  CHECK(topology.index_among_owners(2) == 1);
  CHECK(topology.index_among_owners(4) == -1);
  topology.set_speeds({});
  CHECK_FALSE(topology.has_speeds());
  Topology pair;
  pair.set_speeds(std::vector<std::uint32_t>{1024, 1});
  CHECK_FALSE(pair.has_speeds());
}
