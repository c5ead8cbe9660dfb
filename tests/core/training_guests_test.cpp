// Trainings in simulated time that guests, as browsers are, come to and leave. What is checked: see training_test.cpp.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "tests/core/training_runs.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

using Kind = TrainingFault::Kind;

constexpr Duration kLimit = Duration::seconds(90);

/// Two guests come to `size` ranks, and then a process.
constexpr int kComing = 3;

/// Returns what goes wrong there with these faults, or "". In the end so many train together.
std::string run_guests(int size, const Faults& faults, int together, BrokenTrainer broken = BrokenTrainer::none,
                       std::uint64_t* events = nullptr) {
  SimTraining training({calm(size), OnSplit::wait, true, kComing}, broken);
  training.sim().run_for(Duration::milliseconds(2));
  const std::uint64_t begin = training.sim().event_count();
  training.break_at(begin, {Kind::guest_comes});
  training.break_at(begin, {Kind::guest_comes, 0, 0, 40});
  training.break_at(begin, {Kind::joins, 0, 0, 4000});
  std::uint64_t last = 4000;
  for (const TrainingFault& fault : faults) {
    training.break_at(begin, fault);
    last = std::max(last, fault.event);
  }
  training.sim().run_until([&] { return training.sim().event_count() > begin + last; }, {.time = Duration::seconds(60)});
  if (std::any_of(faults.begin(), faults.end(), lasts_until_healed)) training.sim().run_for(Duration::seconds(8));
  training.heal();
  const bool go_on = training.run_until_groups_go_on({together}, kLimit);
  if (events != nullptr) *events = training.sim().event_count() - begin;
  std::string wrong = training.check();
  return !wrong.empty() || go_on ? wrong : "I7, I8: others go on than those who can";
}

std::uint64_t events_with_guests(int size) {
  std::uint64_t events = 0;
  REQUIRE(run_guests(size, {}, size + kComing, BrokenTrainer::none, &events) == "");
  return events;
}

/// Returns what goes wrong after faults of all kinds while guests and processes come and go, or "".
std::string run_random_guests(std::uint64_t seed) {
  SimRandom random(seed + 977);
  const GroupSetup setup = random_setup(random, seed);
  const auto count = 3 + random.below(5);
  SimTraining training({setup, random.below(3) == 0 ? OnSplit::fork : OnSplit::wait, true, static_cast<int>(count)});
  for (const std::uint64_t event : {0, 40}) training.break_at(training.sim().event_count(), {Kind::guest_comes, 0, 0, event});
  return run_random_faults(training, random, {count - 2, setup.size + 2, Kind::kCount, 12'000});
}

}  // namespace

TEST_CASE("guests come and go, and whoever ends, guest or not, all the others train together again") {
  Runs runs;
  for (const int size : {2, 3, 4}) {
    const std::uint64_t events = events_with_guests(size);
    for (int process = 0; process < size + kComing; ++process)
      for (std::uint64_t event = static_cast<std::uint64_t>(process) * 31 % every(499); event < events; event += every(499)) {
        // A process that has not come when it is to end does not come.
        const Faults faults{{event % 2 == 0 ? Kind::process_ends : Kind::process_is_reset, process, 0, event}};
        runs.expect_nothing_wrong(run_guests(size, faults, size + kComing - 1), size, faults);
      }
  }
}

TEST_CASE("guests and ranks that stand still, and links between them that break, cost nobody the training") {
  Runs runs;
  for (const int size : {3, 4}) {
    const std::uint64_t events = events_with_guests(size);
    std::uint64_t turn = 0;
    for (int process = 0; process < size + kComing; ++process)
      for (const Kind kind : {Kind::stands_still, Kind::link_is_reset, Kind::link_is_deaf})
        for (std::uint64_t event = turn++ * 17 % every(1499); event < events; event += every(1499)) {
          const Faults faults{{kind, process, (process + 1) % size, event}};
          if (process == faults.front().other) continue;
          runs.expect_nothing_wrong(run_guests(size, faults, size + kComing), size, faults);
        }
  }
}

TEST_CASE("nobody believes a guest that says it has more steps than all others") {
  CHECK(run_guests(3, {}, 6, BrokenTrainer::guests_boast) == "");
}

TEST_CASE("whatever breaks while guests and processes come and go, and in whatever order, the invariants hold") {
  for (const auto seed : seeds(150)) {
    CAPTURE(seed);
    REQUIRE(run_random_guests(seed) == "");
  }
}

TEST_CASE("the checks of a training notice each thing that ranks may do wrong with guests") {
  finds("I2:", run_guests(3, {}, 6, BrokenTrainer::believes_guests));
  finds("I4: an op", run_guests(3, {}, 6, BrokenTrainer::keeps_guests));
}
