// Trainings in simulated time that processes join, come back to and rejoin, with faults at each event of it. What is checked: see
// training_test.cpp.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/core/training_runs.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

using Kind = TrainingFault::Kind;

constexpr Duration kLimit = Duration::seconds(90);

/// The events from when a process begins to knock until it trains with the others.
std::uint64_t events_of_join(int size) {
  SimTraining training({calm(size), OnSplit::wait, false, 1});
  training.sim().run_for(Duration::milliseconds(2));
  const std::uint64_t begin = training.sim().event_count();
  training.break_at(begin, {Kind::joins});
  REQUIRE(training.run_until_groups_go_on({size + 1}, kLimit));
  REQUIRE(training.check() == "");
  return training.sim().event_count() - begin;
}

/// Returns what goes wrong where a process joins `size` others and these faults happen at events since then, or "".
std::string run_join(int size, const Faults& faults, const std::vector<int>& groups, BrokenTrainer broken = BrokenTrainer::none,
                     OnSplit on_split = OnSplit::wait) {
  const auto joiners = 1 + static_cast<int>(std::count_if(faults.begin(), faults.end(), [](const TrainingFault& fault) {
                         return fault.kind == Kind::is_restarted || fault.kind == Kind::joins;
                       }));
  SimTraining training({calm(size), on_split, true, joiners}, broken);
  training.sim().run_for(Duration::milliseconds(2));
  const std::uint64_t begin = training.sim().event_count();
  training.break_at(begin, {Kind::joins});
  std::uint64_t last = 0;
  for (const TrainingFault& fault : faults) {
    training.break_at(begin, fault);
    last = std::max(last, fault.event);
  }
  training.sim().run_until([&] { return training.sim().event_count() > begin + last; }, {.time = Duration::seconds(30)});
  const bool lasts = std::any_of(faults.begin(), faults.end(), lasts_until_healed);
  if (lasts) training.sim().run_for(Duration::seconds(8));
  training.heal();
  if (!training.run_until_groups_go_on(groups, kLimit)) {
    const std::string wrong = training.check();
    return wrong.empty() ? "I7, I8: others go on than those who can" : wrong;
  }
  return training.check();
}

/// Returns what goes wrong in any of the runs in which one process has this fault while another one joins, or "".
std::string run_each_join(int size, Kind kind, const std::vector<int>& groups, BrokenTrainer broken, std::uint64_t stride = 1) {
  const std::uint64_t events = events_of_join(size);
  for (int process = 0; process <= size; ++process)
    for (std::uint64_t event = static_cast<std::uint64_t>(process); event < events; event += stride)
      if (std::string wrong = run_join(size, {{kind, process, 0, event}}, groups, broken); !wrong.empty()) return wrong;
  return {};
}

/// Returns what goes wrong where processes end, come back and join at any moments, as long as one with the state lives, or "".
std::string run_random_joins(std::uint64_t seed, BrokenTrainer broken = BrokenTrainer::none) {
  SimRandom random(seed + 77);
  const GroupSetup setup = random_setup(random, seed);
  const auto count = 1 + random.below(4);
  SimTraining training({setup, OnSplit::wait, true, static_cast<int>(count)}, broken);
  const std::uint64_t begin = training.sim().event_count();
  int living = setup.size, victim = 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t event = random.below(random.below(2) != 0 ? 600 : 5000);
    const bool is_over = victim == setup.size;
    const std::uint64_t kind = random.below(is_over ? 1 : 3);
    if (kind == 0) ++living;
    if (kind == 1) --living;
    const Kind kinds[]{Kind::joins, random.below(2) == 0 ? Kind::process_ends : Kind::process_is_reset, Kind::is_restarted};
    training.break_at(begin, {kinds[kind], kind == 0 ? 0 : victim, 0, event});
    if (kind != 0) ++victim;
  }
  // A rank that is alone has few events.
  training.sim().run_until([&] { return training.sim().event_count() > begin + 5000; }, {.time = Duration::seconds(3000)});
  const bool go_on = training.run_until_groups_go_on({living}, kLimit);
  std::string wrong = training.check();
  return !wrong.empty() || go_on ? wrong : "I7, I8: others go on than those who can";
}

/// Returns what goes wrong after faults of all kinds while processes join, or "".
std::string run_random_faults_and_joins(std::uint64_t seed, BrokenTrainer broken = BrokenTrainer::none) {
  SimRandom random(seed + 131);
  const GroupSetup setup = random_setup(random, seed);
  const auto count = 2 + random.below(5);
  SimTraining training({setup, random.below(3) == 0 ? OnSplit::fork : OnSplit::wait, true, static_cast<int>(count)}, broken);
  training.break_at(training.sim().event_count(), {Kind::joins, 0, 0, random.below(400)});
  return run_random_faults(training, random, {count - 1, setup.size + 1, Kind::guest_comes});
}

}  // namespace

TEST_CASE("whoever ends, and after whatever event of a join, the others go on with the one that joins, or without it") {
  Runs runs;
  for (const int size : {2, 3, 4, 5}) {
    const std::uint64_t events = events_of_join(size);
    for (int process = 0; process <= size; ++process)
      for (std::uint64_t event = static_cast<std::uint64_t>(process) % every(53); event < events; event += every(53))
        for (const Kind kind : {Kind::process_ends, Kind::process_is_reset}) {
          const Faults faults{{kind, process, 0, event}};
          runs.expect_nothing_wrong(run_join(size, faults, {size}), size, faults);
        }
  }
}

TEST_CASE("a rank that ends at any event comes back as a new one") {
  Runs runs;
  for (const int size : {2, 3, 4, 5}) {
    const std::uint64_t events = events_of_join(size);
    for (int process = 0; process < size; ++process)
      for (std::uint64_t event = static_cast<std::uint64_t>(process) % every(61); event < events; event += every(61)) {
        const Faults faults{{Kind::is_restarted, process, 0, event}};
        runs.expect_nothing_wrong(run_join(size, faults, {size + 1}), size, faults);
      }
  }
}

TEST_CASE("a second process may end at any event after the first one while a third joins") {
  Runs runs;
  for (const int size : {3, 4, 5}) {
    const std::uint64_t events = events_of_join(size);
    std::uint64_t turn = 0;
    for (int first = 0; first <= size; ++first)
      for (int second = 0; second <= size; ++second)
        for (std::uint64_t later = 0; later < 400; later += every(10))
          for (std::uint64_t event = turn++ % every(4001); event < events && first != second; event += every(4001)) {
            const Faults faults{{Kind::process_ends, first, 0, event}, {Kind::process_is_reset, second, 0, event + later}};
            runs.expect_nothing_wrong(run_join(size, faults, {size - 1}), size, faults);
          }
  }
}

TEST_CASE("whoever stands still at any event of a join, or whichever link breaks, all are together again afterwards") {
  Runs runs;
  for (const int size : {3, 4}) {
    const std::uint64_t events = events_of_join(size);
    std::uint64_t turn = 0;
    for (int process = 0; process <= size; ++process) {
      for (std::uint64_t event = turn++ % every(61); event < events; event += every(61)) {
        const Faults faults{{Kind::stands_still, process, 0, event}};
        runs.expect_nothing_wrong(run_join(size, faults, {size + 1}), size, faults);
      }
      for (int other = 0; other < process; ++other)
        for (const Kind kind : {Kind::link_is_cut, Kind::link_is_reset, Kind::link_is_deaf})
          for (std::uint64_t event = turn++ % every(211); event < events; event += every(211)) {
            const Faults faults{{kind, process, other, event}};
            runs.expect_nothing_wrong(run_join(size, faults, {size + 1}), size, faults);
          }
    }
  }
}

TEST_CASE("whichever part of a network is away, or of the ranks stands still, and for however long, all are together again afterwards") {
  Runs runs;
  for (const int size : {2, 3, 4, 5})
    for (const OnSplit on_split : {OnSplit::wait, OnSplit::fork})
      // While the parts wait, and after they have gone on by themselves.
      for (const int seconds : {8, 25})
        for (const Kind kind : {Kind::network_parts, Kind::stands_still}) {
          std::uint64_t turn = 0;
          for (int away = 1; away + 1 < 1 << size; ++away) {
            const std::uint64_t event = 7 * turn++ % 120;
            SimTraining training({calm(size), on_split, true, 0});
            training.sim().run_for(Duration::milliseconds(2));
            Faults faults;
            for (int process = 0; process < size; ++process)
              if (kind == Kind::stands_still && (away >> process & 1) != 0) faults.push_back({kind, process, 0, event});
            if (kind == Kind::network_parts) faults.push_back({kind, away, 0, event});
            for (const TrainingFault& fault : faults) training.break_at(training.sim().event_count(), fault);
            training.sim().run_for(Duration::seconds(seconds));
            training.heal();
            const bool together = training.run_until_groups_go_on({size}, kLimit);
            CAPTURE(on_split == OnSplit::fork, seconds, away);
            const std::string wrong = training.check();
            runs.expect_nothing_wrong(wrong.empty() && !together ? "I7, I8: not all are together again" : wrong, size, faults);
          }
        }
}

TEST_CASE("whenever processes end, join and come back, all of them train together in the end") {
  for (const auto seed : seeds(300)) {
    CAPTURE(seed);
    REQUIRE(run_random_joins(seed) == "");
  }
}

TEST_CASE("whatever breaks while processes join, and in whatever order, the invariants hold") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    REQUIRE(run_random_faults_and_joins(seed) == "");
  }
}

TEST_CASE("the checks of a training notice each thing that ranks may do wrong where others join") {
  // Each is looked for at event after event, which slow builds need not do again.
  if (takes_part_of_seeds()) return;
  finds("I3:", run_each_join(3, Kind::process_ends, {3}, BrokenTrainer::switches_without_agree));
  finds("I6:", run_each_join(3, Kind::link_is_reset, {4}, BrokenTrainer::switches_without_agree));
  finds("I7, I8:", run_each_join(2, Kind::process_ends, {2}, BrokenTrainer::switches_when_forming));
  CHECK(run_each_join(3, Kind::power_fails, {3}, BrokenTrainer::none, 10) == "");
  finds("I7, I8:", run_each_join(3, Kind::power_fails, {3}, BrokenTrainer::leaves_where_one_is_lost));
  finds("I7, I8:", run_each_join(2, Kind::process_ends, {2}, BrokenTrainer::uses_ticket_again));
  finds("I5: a committed", run_each_join(3, Kind::stands_still, {4}, BrokenTrainer::takes_from_those_behind, 50));
  finds("I11:", run_join(2, {}, {3}, BrokenTrainer::computes_unfilled));
  finds("I11:", run_join(2, {}, {3}, BrokenTrainer::takes_wrong_blocks));
  finds("I11:", run_each_join(2, Kind::process_ends, {2}, BrokenTrainer::gives_unfilled));
}
