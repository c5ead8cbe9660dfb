// Trainings in simulated time whose state is sharded, with two holders of each row. What is checked: see training_test.cpp, I13.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/core/training_runs.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

using Kind = TrainingFault::Kind;

Case of_rows(int size, Faults faults, std::vector<int> groups) {
  Case one{size, std::move(faults), std::move(groups)};
  one.shards = true;
  return one;
}

Window window_of_rows(int size) { return window_of(of_rows(size, {}, {}).setup()); }

/// What came of losses after which rows may be lost with all their holders.
struct Outcomes {
  int kept = 0, lost = 0;
};

/// Returns what goes wrong, or "". The ranks that are left go on with all rows, from a checkpoint, or where there is none not at all.
std::string run_losses(const Case& one, const Window& window, Outcomes& outcomes, BrokenTrainer broken = BrokenTrainer::none) {
  SimTraining training(one.setup(), broken);
  std::uint64_t last = 0;
  for (const TrainingFault& fault : one.faults) {
    training.break_at(window.begin, fault);
    last = std::max(last, fault.event);
  }
  training.sim().run_until([&] { return training.sim().event_count() > window.begin + last; }, {.time = Duration::seconds(30)});
  const bool go_on = training.run_until_groups_go_on(one.groups, Duration::seconds(30));
  // The second holders are whole again by then.
  training.sim().run_for(Duration::seconds(3));
  if (std::string wrong = training.check(); !wrong.empty()) return wrong;
  const std::vector<int> living = training.living();
  const auto went_back = [&](int process) { return !training.trainer(process).rollbacks().empty(); };
  const bool have_ended = std::all_of(living.begin(), living.end(), [&](int process) { return training.trainer(process).has_lost_rows(); });
  const bool all_went_back = std::all_of(living.begin(), living.end(), went_back);
  if (go_on == have_ended) return "I7, I8: others go on than those who can";
  if (go_on && !all_went_back && std::any_of(living.begin(), living.end(), went_back)) return "I13: some ranks went back, and others not";
  if (have_ended && one.saves_every > 0) return "I13: ranks end although there is a checkpoint";
  ++(have_ended || all_went_back ? outcomes.lost : outcomes.kept);
  return {};
}

/// Returns what is wrong in any of the runs in which two ranks end, the second one in any step of the rebuild after the first loss, or "".
std::string run_two_losses(int size, std::uint64_t saves_every, std::uint64_t stride, Outcomes& outcomes,
                           BrokenTrainer broken = BrokenTrainer::none, Runs* runs = nullptr) {
  const Window window = window_of_rows(size);
  std::uint64_t turn = 0;
  for (int first = 0; first < size; ++first)
    for (int second = 0; second < size; ++second)
      for (std::uint64_t later = turn++ % stride; later < 4 * window.size() && first != second; later += stride) {
        Case one = of_rows(
            size, {{Kind::process_ends, first, 0, turn % window.size()}, {Kind::process_is_reset, second, 0, turn % window.size() + later}},
            {size - 2});
        one.saves_every = saves_every;
        const std::string wrong = run_losses(one, window, outcomes, broken);
        if (runs != nullptr) runs->expect_nothing_wrong(wrong, size, one.faults);
        if (!wrong.empty()) return wrong;
        ++turn;
      }
  return {};
}

/// Returns what is wrong in any of the runs in which one rank of three ends, or "".
std::string run_one_loss_of_three(BrokenTrainer broken) {
  const Window window = window_of_rows(3);
  Outcomes outcomes;
  for (int rank = 0; rank < 3; ++rank)
    for (std::uint64_t event = 0; event < window.size(); ++event)
      if (std::string wrong = run_losses(of_rows(3, {{Kind::process_ends, rank, 0, event}}, {2}), window, outcomes, broken); !wrong.empty())
        return wrong;
  return {};
}

std::string run_two_losses_of_four(BrokenTrainer broken) {
  Outcomes outcomes;
  return run_two_losses(4, 0, 7, outcomes, broken);
}

/// Returns what goes wrong where processes end, come back and join at any moments, and other things break, or "".
std::string run_random_rows(std::uint64_t seed, BrokenTrainer broken = BrokenTrainer::none) {
  SimRandom random(seed + 511);
  const GroupSetup setup = random_setup(random, seed);
  const auto count = 1 + random.below(5);
  TrainingSetup all{setup, OnSplit::wait, true, static_cast<int>(count), true, static_cast<int>(1 + random.below(2)), random.below(4)};
  SimTraining training(all, broken);
  return run_random_faults(training, random, {count, setup.size, Kind::guest_comes});
}

}  // namespace

TEST_CASE("whichever rank ends, and after whatever event of a step, all rows are with their other holders") {
  Runs runs;
  Outcomes outcomes;
  for (const int size : {2, 3, 4, 5}) {
    const Window window = window_of_rows(size);
    const std::uint64_t stride = size < 4 ? 1 : 3;
    for (int rank = 0; rank < size; ++rank)
      for (std::uint64_t event = static_cast<std::uint64_t>(rank) % every(stride); event < window.size(); event += every(stride)) {
        const Kind kind = (event + static_cast<std::uint64_t>(rank)) % 2 == 0 ? Kind::process_ends : Kind::process_is_reset;
        const Case one = of_rows(size, {{kind, rank, 0, event}}, {size - 1});
        runs.expect_nothing_wrong(run_losses(one, window, outcomes), size, one.faults);
      }
  }
  CHECK(outcomes.lost == 0);
}

TEST_CASE(
    "a second rank may end in any step of the rebuild after a loss: all rows are there still, or all who are left say that they are not") {
  for (const std::uint64_t saves_every : {0, 2}) {
    Runs runs;
    Outcomes outcomes;
    for (const int size : {3, 4, 5}) run_two_losses(size, saves_every, every(97), outcomes, BrokenTrainer::none, &runs);
    CAPTURE(saves_every, outcomes.kept, outcomes.lost);
    CHECK((outcomes.kept > 0 || share_of(100) < 100));
    CHECK((outcomes.lost > 0 || share_of(100) < 100));
  }
}

TEST_CASE("all ranks of a machine may end at once, at any event, where no machine has more than half of the ranks") {
  Runs runs;
  Outcomes outcomes;
  for (const int size : {4, 5}) {
    Case one = of_rows(size, {}, {size - 2});
    one.ranks_per_machine = 2;
    const Window window = window_of(one.setup());
    for (int first = 0; first + 1 < size; first += 2)
      for (std::uint64_t event = static_cast<std::uint64_t>(first) % every(5); event < window.size(); event += every(5)) {
        one.faults = {{Kind::process_ends, first, 0, event}, {Kind::process_is_reset, first + 1, 0, event}};
        runs.expect_nothing_wrong(run_losses(one, window, outcomes), size, one.faults);
      }
  }
  CHECK(outcomes.lost == 0);
}

TEST_CASE("whichever rank falls silent, and whichever link is cut, reset or deaf, all rows are with those who go on") {
  Runs runs;
  for (const int size : {3, 4}) {
    const Window window = window_of_rows(size);
    std::uint64_t turn = 0;
    for (const Kind kind : {Kind::stands_still, Kind::power_fails, Kind::link_is_cut, Kind::link_is_deaf, Kind::link_is_reset})
      for (int rank = 0; rank < size; ++rank)
        for (std::uint64_t event = turn++ % every(41); event < window.size(); event += every(41)) {
          const Case one = of_rows(size, {{kind, rank, (rank + 1) % size, event}}, {size - 1});
          runs.expect_nothing_wrong(run(one, window), size, one.faults);
        }
  }
}

TEST_CASE("whatever breaks, ends and joins where the state is sharded, and in whatever order, the invariants hold") {
  for (const auto seed : seeds(300)) {
    CAPTURE(seed);
    REQUIRE(run_random_rows(seed) == "");
  }
}

TEST_CASE("the checks of a training notice each thing that ranks may do wrong with rows") {
  // Each is looked for at event after event, which slow builds need not do again.
  if (takes_part_of_seeds()) return;
  Case machines = of_rows(4, {}, {4});
  machines.ranks_per_machine = 2;
  finds("I13: both", run(machines, window_of(machines.setup()), BrokenTrainer::holds_both_on_one_machine));
  finds("I13: a row's second holder is not rebuilt", run(of_rows(3, {}, {3}), window_of_rows(3), BrokenTrainer::keeps_one_copy));
  finds("I13: the holders", run(of_rows(3, {}, {3}), window_of_rows(3), BrokenTrainer::forgets_second_holders));
  finds("I13: the holders", run_one_loss_of_three(BrokenTrainer::counts_slice_as_all));
  finds("I13: rows are given up", run_one_loss_of_three(BrokenTrainer::asks_first_holders_alone));
  finds("I13: rows are given up", run_two_losses_of_four(BrokenTrainer::takes_rows_without_vote));
  finds("I3: the rows", run_two_losses_of_four(BrokenTrainer::counts_missing_rows));
  finds("I3: the rows", run_two_losses_of_four(BrokenTrainer::goes_on_without_lost_rows));
}
