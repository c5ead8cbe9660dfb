// Processes that train together are killed. What is left is compared, step for step and bit for bit, with a run that nobody disturbs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>

#include "sim/sim_random.hpp"
#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/native/training_town.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr int kMostProcesses = 10;

TownTraining training_of(std::uint64_t seed) { return {seed % 2 == 0 ? 100'000U : 50U, seed % 4 < 2 ? 1000 : 1 << 20}; }

void check_all_steps(TrainingTown& town, const TownTraining& training) {
  CHECK(town.end_well());
  CHECK_FALSE(town.has_parted());
  CHECK(town.journal().differences() == 0);
  CHECK(town.journal().gaps() == 0);
  const auto differs = first_difference(town.journal(), training);
  CAPTURE(town.journal().size(), differs.value_or(0));
  CHECK_FALSE(differs);
}

}  // namespace

TEST_CASE("processes are killed and others join, at random: every step is that of an undisturbed run") {
  Campaign campaign("ranks that train are killed, and others join: all commit a step");
  for (const auto seed : seeds(25)) {
    CAPTURE(seed);
    SimRandom random(seed);
    TrainingTown town(training_of(seed), {.encrypt = seed % 2 == 1});
    REQUIRE(town.go_on());
    for (int event = 0; event < 8; ++event) {
      CAPTURE(event, town.size());
      campaign.begin();
      const auto begin = std::chrono::steady_clock::now();
      const bool is_full = town.started() == kMostProcesses;
      const bool comes = town.size() < 2 || (!is_full && random.chance(600));
      if (comes) town.grow();
      // Half of those that come do so while another one goes, which may be the same.
      if (!comes || (town.size() > 2 && random.chance(500))) {
        pass(std::chrono::microseconds(random.below(comes ? 40'000 : 5'000)));
        town.kill(town.any(random));
      }
      REQUIRE(town.go_on());
      campaign.goes_well_since(begin);
      if (is_full && town.size() == 1) break;
    }
    check_all_steps(town, training_of(seed));
  }
}

TEST_CASE("whichever rank is killed in training, and whenever, every step is that of an undisturbed run, and all name who was lost") {
  Campaign campaign("ranks that train are killed, one after the other: all name who was lost, and commit the next step");
  for (const auto seed : seeds(67)) {
    CAPTURE(seed);
    SimRandom random(seed);
    TrainingTown town(training_of(seed), {.encrypt = seed % 2 == 1});
    REQUIRE(town.go_on());
    while (town.size() > 1) {
      CAPTURE(town.size());
      campaign.begin();
      pass(std::chrono::microseconds(random.below(20'000)));
      // Every other one dies within a collective, when some of the others may have its part and some not.
      if (random.chance(500))
        town.kill(town.any(random));
      else
        town.kill_in_average(town.any(random), std::chrono::nanoseconds(1 + random.below(200'000)));
      const auto begin = std::chrono::steady_clock::now();
      REQUIRE(town.go_on());
      campaign.goes_well_since(begin);
      REQUIRE(town.all_blame_the_last());
    }
    check_all_steps(town, training_of(seed));
  }
}
