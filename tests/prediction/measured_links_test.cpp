#include "tools/prediction/measured_links.hpp"

#include <catch2/catch.hpp>
#include <set>

using namespace ringlet;
using namespace ringlet::prediction;

TEST_CASE("each pair measures once, and no rank has two partners in a round") {
  for (int size = 1; size <= 17; ++size) {
    CAPTURE(size);
    std::set<std::pair<int, int>> all;
    const auto rounds = rounds_of_pairs(size);
    CHECK(rounds.size() == static_cast<std::size_t>(size == 1 ? 1 : size + size % 2 - 1));
    for (const auto& pairs : rounds) {
      std::set<int> busy;
      for (const auto& [one, other] : pairs) {
        CHECK(one < other);
        CHECK(other < size);
        CHECK(busy.insert(one).second);
        CHECK(busy.insert(other).second);
        CHECK(all.insert({one, other}).second);
      }
    }
    CHECK(all.size() == static_cast<std::size_t>(size * (size - 1) / 2));
  }
}

TEST_CASE("a port is as fast as the fastest of its links, in each direction") {
  // Rank 2 sends at a fifth and receives at half of the others' speed.
  const std::vector<MeasuredLink> links{{0, 1, 100'000, 8, 8, 8}, {0, 2, 300'000, 16, 40, 40}, {1, 2, 300'000, 17, 41, 41}};
  const std::vector<PortCost> ports = ports_of(3, links);
  CHECK(ports[0].per_byte_out == 8);
  CHECK(ports[0].per_byte_in == 8);
  CHECK(ports[2].per_byte_out == 40);
  CHECK(ports[2].per_byte_in == 16);
  CHECK(ports[2].latency + ports[2].per_frame == 300'000);
  CHECK(ports[2].per_frame == 5'000);
  CHECK(slower_than_ports(links, ports, 1.5).empty());
}

TEST_CASE("a port whose directions share the air gets what both have together") {
  const std::vector<MeasuredLink> links{{0, 1, 1000, 8, 8, 8}, {0, 2, 1000, 27, 27, 54}, {1, 2, 1000, 27, 27, 54}};
  const std::vector<PortCost> ports = ports_of(3, links);
  CHECK(ports[0].per_byte_out == 8);
  CHECK(ports[2].per_byte_out == 54);
  CHECK(ports[2].per_byte_in == 54);
  CHECK(ports[2].per_frame == 250);
}

TEST_CASE("a link that is slower than both of its ports is named") {
  const std::vector<MeasuredLink> links{{0, 1, 1000, 8, 80, 80}, {0, 2, 1000, 8, 8, 8}, {1, 2, 1000, 8, 8, 8}};
  const auto slower = slower_than_ports(links, ports_of(3, links), 1.5);
  REQUIRE(slower.size() == 1);
  CHECK(slower[0].one == 0);
  CHECK(slower[0].other == 1);
}
