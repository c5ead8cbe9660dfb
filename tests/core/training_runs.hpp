#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "sim/sim_random.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_training.hpp"

// What the campaigns of simulated trainings have in common.
namespace ringlet::test {

using Faults = std::vector<TrainingFault>;

inline GroupSetup calm(int size) {
  GroupSetup setup;
  setup.size = size;
  setup.paths = PathOptions::calm();
  return setup;
}

/// Every so many cases are tried, and more of them where RINGLET_SEED_PERCENT asks for more.
inline std::uint64_t every(std::uint64_t count) { return std::max<std::uint64_t>(1, count * 100 / share_of(100)); }

inline bool is_of_link(const TrainingFault& fault) {
  using Kind = TrainingFault::Kind;
  return fault.kind == Kind::link_is_cut || fault.kind == Kind::link_is_deaf || fault.kind == Kind::link_is_reset;
}

inline bool lasts_until_healed(const TrainingFault& fault) {
  using Kind = TrainingFault::Kind;
  return is_of_link(fault) || fault.kind == Kind::stands_still || fault.kind == Kind::power_fails || fault.kind == Kind::network_parts;
}

/// Counts the runs of a test, and checks each.
class Runs {
 public:
  ~Runs() {
    std::printf("%s: %llu runs\n", Catch::getResultCapture().getCurrentTestName().c_str(), static_cast<unsigned long long>(count_));
  }
  /// `wrong` is what went wrong in a run of these faults.
  void expect_nothing_wrong(const std::string& wrong, int size, const Faults& faults) {
    ++count_;
    if (wrong.empty()) return;
    for (const TrainingFault& fault : faults)
      UNSCOPED_INFO("fault " << static_cast<int>(fault.kind) << " of " << fault.rank << ", " << fault.other << " at " << fault.event);
    CAPTURE(size);
    REQUIRE(wrong == "");
  }

 private:
  std::uint64_t count_ = 0;
};

/// Returns the first thing that goes wrong in any of these runs, or "".
inline std::string run_seeds(std::string (*run_one)(std::uint64_t, BrokenTrainer), std::uint64_t count, BrokenTrainer broken) {
  for (std::uint64_t seed = 0; seed < count; ++seed)
    if (std::string wrong = run_one(seed, broken); !wrong.empty()) return wrong;
  return {};
}

/// Something of this kind must be wrong.
inline void finds(const char* text, const std::string& wrong) {
  CAPTURE(wrong, text);
  CHECK(wrong.rfind(text, 0) == 0);
}

inline constexpr std::uint64_t kStepsBefore = 2, kStepsOfWindow = 3;  // so many steps are tried, event by event

/// The events between a step's end on all ranks and the end of some more steps, undisturbed.
struct Window {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t size() const { return end - begin; }
};

inline Window window_of(const TrainingSetup& setup) {
  SimTraining training(setup);
  const auto all_have = [&](std::uint64_t steps) {
    return training.sim().run_until([&] {
      const std::vector<int> ranks = training.living();
      return std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return training.trainer(rank).log().size() >= steps; });
    }) == RunEnd::done;
  };
  Window window;
  REQUIRE(all_have(kStepsBefore));
  window.begin = training.sim().event_count();
  REQUIRE(all_have(kStepsBefore + kStepsOfWindow));
  window.end = training.sim().event_count();
  return window;
}

inline Window window_of(int size) { return window_of(TrainingSetup{calm(size)}); }

struct Case {
  int size = 3;
  Faults faults;
  std::vector<int> groups;  // the sizes of those that go on
  OnSplit on_split = OnSplit::wait;
  bool others_learn = false;  // that they were left out
  // Of sharded state.
  bool shards = false;
  int ranks_per_machine = 1;
  std::uint64_t saves_every = 0;
  std::optional<std::vector<int>> healed{};  // as `groups`, once the network is whole and all are awake; unset: the same
  TrainingSetup setup() const { return {calm(size), on_split, false, 0, shards, ranks_per_machine, saves_every}; }
};

/// Returns what went wrong, or "".
inline std::string run(const Case& one, const Window& window, BrokenTrainer broken = BrokenTrainer::none) {
  using Kind = TrainingFault::Kind;
  SimTraining training(one.setup(), broken);
  std::uint64_t last = 0;
  bool lasts = false;  // until it is healed
  for (const TrainingFault& fault : one.faults) {
    training.break_at(window.begin, fault);
    last = std::max(last, fault.event);
    lasts = lasts || (fault.kind != Kind::process_ends && fault.kind != Kind::process_is_reset);
  }
  training.sim().run_until([&] { return training.sim().event_count() > window.begin + last; }, {.time = Duration::seconds(30)});
  if (one.groups.empty()) training.sim().run_for(Duration::seconds(25));
  if (!training.run_until_groups_go_on(one.groups, Duration::seconds(60))) {
    const std::string wrong = training.check();
    return wrong.empty() ? "I7, I8: others go on than those who can" : wrong;
  }
  training.heal();
  training.sim().run_for(lasts ? Duration::seconds(20) : Duration::seconds(1));
  if (std::string wrong = training.check(); !wrong.empty()) return wrong;
  if (training.groups_that_go_on() != one.healed.value_or(one.groups)) return "I6, I7: after the network is whole others go on than before";
  for (const int rank : training.living())
    if (one.others_learn && !training.trainer(rank).goes_on(0) && !training.trainer(rank).left_out())
      return "I12: rank " + std::to_string(rank) + " has not learnt that it was left out";
  return {};
}

struct RandomFaults {
  std::uint64_t count;
  int processes;                // to which they happen
  TrainingFault::Kind kinds;    // those before this one
  std::uint64_t events = 5000;  // after which all have happened
};

/// Breaks these, heals what can be healed, and returns what went wrong, or "".
inline std::string run_random_faults(SimTraining& training, SimRandom& random, const RandomFaults& faults) {
  const std::uint64_t begin = training.sim().event_count();
  const auto processes = static_cast<std::uint64_t>(faults.processes);
  for (std::uint64_t i = 0; i < faults.count; ++i) {
    TrainingFault fault{static_cast<TrainingFault::Kind>(random.below(static_cast<std::uint64_t>(faults.kinds))),
                        static_cast<int>(random.below(processes)), static_cast<int>(random.below(processes)),
                        random.below(random.below(2) != 0 ? 600 : faults.events)};
    if (fault.kind == TrainingFault::Kind::network_parts) fault.rank = static_cast<int>(random.below(1ULL << processes));
    if (!is_of_link(fault) || fault.rank != fault.other) training.break_at(begin, fault);
  }
  training.sim().run_for(Duration::milliseconds(static_cast<std::int64_t>(random.below(20'000))));
  training.heal();
  training.sim().run_for(Duration::seconds(40));
  return training.check();
}

}  // namespace ringlet::test
