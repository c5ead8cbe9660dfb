// Tests of the pure functions by which parts follow what links carry while ranks train.
#include "core/plan/link_speeds.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "sim/sim_random.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

using Costs = std::vector<std::uint64_t>;
using Speeds = std::vector<std::uint32_t>;

/// Costs of ranks whose true slowness is given, each off by at most `per_cent`.
Costs noisy(SimRandom& random, const std::vector<double>& slowness, std::uint64_t per_cent) {
  Costs costs;
  for (const double slower : slowness) {
    const double noise = 1 + (static_cast<double>(random.below(2 * per_cent + 1)) - static_cast<double>(per_cent)) / 100;
    costs.push_back(static_cast<std::uint64_t>(8000 * slower * noise));
  }
  return costs;
}

/// Adds windows until speeds change; returns how many it took, or `most`.
int windows_until_change(SpeedRecord& record, const Costs& costs, int most) {
  for (int window = 1; window <= most; ++window)
    if (const auto proposal = record.add(costs)) {
      record.take(proposal->speeds);
      return window;
    }
  return most;
}

}  // namespace

TEST_CASE("a rank's cost is that of the fastest of its links, each in its slower direction") {
  // Rank 2 is slow. Along a ring only neighbours send to each other.
  CHECK(costs_of_ranks(Costs{0, 8000, 0, 0,    //
                             0, 0, 32'000, 0,  //
                             0, 0, 0, 32'000,  //
                             8000, 0, 0, 0},
                       4) == Costs{8000, 8000, 32'000, 8000});
  // Rank 1 receives fast and sends slowly.
  CHECK(costs_of_ranks(Costs{0, 8000, 8000, 32'000, 0, 32'000, 8000, 8000, 0}, 3) == Costs{8000, 32'000, 8000});
  // Rank 2 sends to both others at a time.
  CHECK(costs_of_ranks(Costs{8000, 8000, 0, 9000, 10'000, 0, 16'000, 16'000, 8500}, 3) == Costs{8000, 9000, 8500});
  // Rank 2 sends fast, to both at a time, and receives slowly, from both at a time.
  CHECK(costs_of_ranks(Costs{8000, 8000, 64'000, 8000, 8000, 64'000, 8000, 8000, 8000}, 3) == Costs{8000, 8000, 32'000});
  CHECK(costs_of_ranks(Costs(9), 3) == Costs{0, 0, 0});
}

TEST_CASE("a rank that turns slow, and fast again, changes its speed after three windows in a row") {
  SpeedRecord record(Speeds(4, kFullSpeed));
  const Costs equal{8000, 8000, 8000, 8000}, slow{8000, 8000, 32'000, 8000};
  CHECK_FALSE(record.add(equal));
  CHECK_FALSE(record.add(slow));
  CHECK_FALSE(record.add(slow));
  // One good window begins the count anew, and one without traffic does not.
  CHECK_FALSE(record.add(equal));
  CHECK_FALSE(record.add(slow));
  CHECK_FALSE(record.add(Costs{8000, 8000, 0, 8000}));
  CHECK_FALSE(record.add(slow));
  const auto slower = record.add(slow);
  REQUIRE(slower);
  CHECK(slower->speeds == Speeds{1024, 1024, 256, 1024});
  CHECK(slower->changes == std::vector<SpeedChange>{{2, 8000, 32'000}});
  // Until the ranks have agreed, it is proposed again.
  CHECK(record.add(slow));
  record.take(slower->speeds);
  CHECK(windows_until_change(record, slow, 20) == 20);
  CHECK(record.in_use() == slower->speeds);
  CHECK_FALSE(record.add(equal));
  CHECK_FALSE(record.add(equal));
  const auto faster = record.add(equal);
  REQUIRE(faster);
  CHECK(faster->speeds == Speeds(4, kFullSpeed));
  CHECK(faster->changes == std::vector<SpeedChange>{{2, 32'000, 8000}});
}

TEST_CASE("of three windows the middle one counts") {
  SpeedRecord record(Speeds(3, kFullSpeed));
  CHECK_FALSE(record.add(Costs{8000, 8000, 80'000}));
  CHECK_FALSE(record.add(Costs{8000, 8000, 16'000}));
  const auto proposal = record.add(Costs{8000, 8000, 40'000});
  REQUIRE(proposal);
  CHECK(proposal->speeds == Speeds{1024, 1024, 205});
  CHECK(proposal->changes == std::vector<SpeedChange>{{2, 0, 40'000}});
}

TEST_CASE("noise around any speeds changes them once at most, and never around equal ones") {
  for (const auto seed : seeds(400)) {
    CAPTURE(seed);
    SimRandom random(seed);
    const auto natives = 3 + random.below(8);
    std::vector<double> slowness(natives, 1);
    // Most ranks are equally fast, so the middle one is.
    const bool equal = seed % 4 == 0;
    for (std::size_t rank = 0; rank < (natives - 1) / 2 && !equal; ++rank)
      slowness[rank] = 1 + static_cast<double>(random.below(900)) / 100;
    SpeedRecord record(Speeds(natives, kFullSpeed));
    std::vector<int> changes(natives);
    for (int window = 0; window < 200; ++window)
      if (const auto proposal = record.add(noisy(random, slowness, 7))) {
        for (const SpeedChange& change : proposal->changes) ++changes[static_cast<std::size_t>(change.rank)];
        record.take(proposal->speeds);
      }
    CHECK(*std::max_element(changes.begin(), changes.end()) <= (equal ? 0 : 1));
    for (std::size_t rank = 0; rank < natives; ++rank) {
      CAPTURE(rank, slowness[rank], record.in_use()[rank]);
      if (slowness[rank] > 1.8) CHECK(static_cast<double>(kFullSpeed) / record.in_use()[rank] == Approx(slowness[rank]).epsilon(0.2));
      if (slowness[rank] < 1.25) CHECK(record.in_use()[rank] == kFullSpeed);
    }
  }
}

TEST_CASE("a rank that is slow and fast in turns, around whatever threshold, changes parts at most once in three windows") {
  constexpr int kWindows = 720;  // of an hour
  for (const auto seed : seeds(400)) {
    CAPTURE(seed);
    SimRandom random(seed);
    const auto natives = 3 + random.below(8);
    SpeedRecord record(Speeds(natives, kFullSpeed));
    std::vector<double> slowness(natives, 1);
    const double slow = 1.2 + static_cast<double>(random.below(100)) / 100;
    const std::uint64_t turn = 1 + random.below(8);  // windows
    int changes = 0, last = -SpeedRecord::kInARow;
    for (int window = 0; window < kWindows; ++window) {
      const bool turns = seed % 2 == 0 ? random.below(turn) == 0 : static_cast<std::uint64_t>(window) % turn == 0;
      if (turns) slowness[1] = slowness[1] > 1 ? 1 : slow;
      const auto proposal = record.add(noisy(random, slowness, 7));
      if (!proposal) continue;
      CHECK(window - last >= SpeedRecord::kInARow);
      last = window;
      ++changes;
      for (const SpeedChange& change : proposal->changes) CHECK(change.rank == 1);
      record.take(proposal->speeds);
    }
    CHECK(changes <= kWindows / SpeedRecord::kInARow);
    if (slow < 1.25 || (turn < SpeedRecord::kInARow && seed % 2 != 0)) CHECK(changes <= 1);
  }
}

TEST_CASE("speeds do not depend on the numbers of ranks, and hardly on the unit of costs") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    SimRandom random(seed);
    const auto natives = 3 + random.below(8);
    std::vector<std::size_t> order(natives);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = natives; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    SpeedRecord record(Speeds(natives, kFullSpeed)), permuted = record, scaled = record;
    for (int window = 0; window < 30; ++window) {
      Costs costs, of_permuted, of_scaled;
      for (std::uint64_t rank = 0; rank < natives; ++rank) costs.push_back(random.below(5) == 0 ? 0 : 4000 + random.below(60'000));
      for (const std::size_t rank : order) of_permuted.push_back(costs[rank]);
      for (const std::uint64_t cost : costs) of_scaled.push_back(cost * 3);
      const auto one = record.add(costs), other = permuted.add(of_permuted), third = scaled.add(of_scaled);
      REQUIRE(one.has_value() == other.has_value());
      REQUIRE(one.has_value() == third.has_value());
      if (!one) continue;
      for (std::size_t place = 0; place < natives; ++place) CHECK(other->speeds[place] == one->speeds[order[place]]);
      CHECK(third->speeds == one->speeds);
      record.take(one->speeds);
      permuted.take(other->speeds);
      scaled.take(third->speeds);
    }
  }
}

TEST_CASE("from whatever speeds the ranks had, equal links lead back to equal parts, and nothing but the links changes them") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    SimRandom random(seed);
    const auto natives = 3 + random.below(8);
    Speeds speeds;
    for (std::uint64_t rank = 0; rank < natives; ++rank)
      speeds.push_back(random.below(2) == 0 ? kFullSpeed : static_cast<std::uint32_t>(1 + random.below(700)));
    SpeedRecord record(speeds);
    CHECK(windows_until_change(record, Costs(natives), 10) == 10);
    CHECK(record.in_use() == speeds);
    const int took = windows_until_change(record, Costs(natives, 8000), 10);
    CHECK(took == (speeds == Speeds(natives, kFullSpeed) ? 10 : 3));
    CHECK(record.in_use() == Speeds(natives, kFullSpeed));
  }
}

TEST_CASE("why parts change is said in Mbit/s") {
  Topology topology;
  topology.set_speeds(Speeds{1024, 256, 1024, 800});
  const std::vector<SpeedChange> changes{{1, 8000, 32'000}, {3, 0, 10'000}, {0, 64'000, 8000}};
  CHECK(
      describe_changes(changes, topology) ==
      "rank 1's links carry 250 Mbit/s, which were 1000 Mbit/s: it owns no part of an all-reduce now; rank 3's links carry 800 Mbit/s: it "
      "owns a smaller part of an all-reduce now; rank 0's links carry 1000 Mbit/s, which were 125 Mbit/s: it owns a full part of an "
      "all-reduce now");
  CHECK(describe_changes({}, topology).empty());
}
