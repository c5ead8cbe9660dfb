// What a process keeps of a training that lives through hundreds of epochs: nothing. See training_test.cpp, I14.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/core/training_runs.hpp"
#include "tests/native/memory_in_use.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr int kRanks = 4;
/// Less than anything takes that is kept of each epoch on all ranks.
constexpr double kBytesOfEpoch = 32;

/// What happens again and again. A revocation, a loss and a growth begin an epoch each.
struct Cycle {
  int revokes = 3;
  bool one_is_left_out = true;
  int epochs() const { return revokes + (one_is_left_out ? 2 : 0); }
};

/// Ends the epoch, and runs until all train in the next one.
void revoke(SimTraining& training, int process) {
  const SimEpoch before = training.trainer(process).epoch();
  training.trainer(process).revoke();
  REQUIRE(training.sim().run_until([&] { return !(training.trainer(process).epoch() == before); }, {.time = Duration::seconds(30)}) ==
          RunEnd::done);
  REQUIRE(training.run_until_groups_go_on({kRanks}, Duration::seconds(60)));
}

/// Epochs end on purpose, a process stands still, so that the others go on without it, wakes, knocks, and is let in.
void run(SimTraining& training, const Cycle& cycle, int number) {
  for (int i = 0; i < cycle.revokes; ++i) revoke(training, (number + i) % kRanks);
  if (cycle.one_is_left_out) {
    training.break_at(0, {TrainingFault::Kind::stands_still, number % kRanks});
    REQUIRE(training.run_until_groups_go_on({kRanks - 1}, Duration::seconds(60)));
    training.heal();
    REQUIRE(training.run_until_groups_go_on({kRanks}, Duration::seconds(60)));
  }
  // What has been said goodbye to closes.
  training.sim().run_for(Duration::seconds(2));
}

/// Returns by how many bytes of memory the processes together grow with each epoch.
double growth_of_epoch(const Cycle& cycle, bool shards, int cycles, BrokenTrainer broken = BrokenTrainer::none) {
  SimTraining training({calm(kRanks), OnSplit::wait, true, 0, shards}, broken);
  REQUIRE(training.run_until_groups_go_on({kRanks}, Duration::seconds(30)));
  std::vector<std::size_t> bytes;
  for (int number = 0; number < cycles; ++number) {
    run(training, cycle, number);
    training.forget_history();
    bytes.push_back(memory_in_use());
  }
  // Timers and messages that are under way make some cycles larger than others, but none smaller.
  const auto least_of = [&](int begin, int end) {
    return static_cast<double>(*std::min_element(bytes.begin() + begin, bytes.begin() + end));
  };
  const int third = cycles / 3;
  const double growth = (least_of(2 * third, cycles) - least_of(third, 2 * third)) / (third * cycle.epochs());
  std::printf("%d epochs: %.0f KiB in use, %.2f bytes more with each\n", cycles * cycle.epochs(), static_cast<double>(bytes.back()) / 1024,
              growth);
  return growth;
}

}  // namespace

TEST_CASE("however many epochs a training has lived through, its processes have no more memory") {
  for (const bool shards : {false, true})
    for (const Cycle& cycle : {Cycle{3, true}, Cycle{5, false}}) {
      CAPTURE(shards, cycle.one_is_left_out);
      CHECK(growth_of_epoch(cycle, shards, 120) < kBytesOfEpoch);
    }
}

TEST_CASE("the measurement of memory notices what is kept of old epochs") {
  const Cycle joins{3, true}, ends{5, false};
  CHECK(growth_of_epoch(ends, false, 15, BrokenTrainer::keeps_old_groups) > kBytesOfEpoch);
  CHECK(growth_of_epoch(joins, false, 15, BrokenTrainer::stays_in_world_before) > kBytesOfEpoch);
  CHECK(growth_of_epoch(joins, false, 15, BrokenTrainer::keeps_old_buffers) > kBytesOfEpoch);
}
