// Processes that train together stand still, and go on later.
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>

#include "sim/sim_random.hpp"
#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/native/training_town.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

const TownTraining kTraining{};

/// A rank stands still until the others have gone on without it, and comes back, so many times.
void stop_and_wake(Campaign& stops, Campaign& wakes, std::uint64_t seed, int times, std::optional<std::chrono::milliseconds> limit) {
  CAPTURE(seed);
  SimRandom random(seed);
  TrainingTown town(kTraining, {.heartbeat_timeout = limit});
  REQUIRE(town.go_on());
  for (int time = 0; time < times; ++time) {
    const int number = town.any(random);
    stops.begin();
    const auto stopped = std::chrono::steady_clock::now();
    town.stop(number);
    REQUIRE(town.go_on());
    stops.goes_well_since(stopped);
    wakes.begin();
    const auto woken = std::chrono::steady_clock::now();
    town.wake(number);
    // It has learnt that it was left out, and has joined again.
    REQUIRE(town.go_on());
    wakes.goes_well_since(woken);
  }
  CHECK(town.end_well());
  CHECK(town.journal().differences() == 0);
  CHECK(town.journal().gaps() == 0);
  CHECK_FALSE(first_difference(town.journal(), kTraining));
}

}  // namespace

TEST_CASE("a rank that stood still is left out, and comes back by itself") {
  Campaign stops("a rank that trains is stopped, with a limit of 0.5 s: the others commit a step");
  Campaign wakes("a rank that trains was stopped and wakes: it joins again, and all commit a step");
  for (const auto seed : seeds(3)) stop_and_wake(stops, wakes, seed, 2, std::chrono::milliseconds(500));
}

TEST_CASE("a rank that stood still for longer than the usual limit is left out, and comes back by itself") {
  Campaign stops("a rank that trains is stopped, with the usual limit of 4 s: the others commit a step");
  Campaign wakes("a rank that trains was stopped and wakes: it joins again, and all commit a step");
  for (const auto seed : seeds(2)) stop_and_wake(stops, wakes, seed, 1, std::nullopt);
}

TEST_CASE("where half of the ranks stood still together, as in a laptop, all train together when these wake") {
  Campaign wakes("half of the ranks that train were stopped and wake: all commit a step together");
  for (const auto seed : seeds(3)) {
    CAPTURE(seed);
    SimRandom random(seed);
    TrainingTown town(kTraining, {.heartbeat_timeout = std::chrono::milliseconds(500)});
    REQUIRE(town.go_on());
    const int one = town.any(random), other = (one + 1 + static_cast<int>(random.below(3))) % 4;
    for (const int number : {one, other}) town.stop(number);
    // The others have missed them, and wait for a proof.
    const auto missed = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
    REQUIRE(wait_until([&] { return std::chrono::steady_clock::now() > missed; }));
    wakes.begin();
    const auto woken = std::chrono::steady_clock::now();
    for (const int number : {one, other}) town.wake(number);
    REQUIRE(town.go_on());
    wakes.goes_well_since(woken);
    for (const auto& [number, pid] : town.here()) CHECK(town.ranks_of(number) == 4);
    CHECK(town.end_well());
    CHECK(town.journal().differences() == 0);
    CHECK(town.journal().gaps() == 0);
    CHECK_FALSE(first_difference(town.journal(), kTraining));
  }
}
