// A training in simulated time, with faults at each event of it, one after the other. Those that processes join: training_growth_test.cpp;
// those that guests come to: training_guests_test.cpp; those whose state is sharded: training_rows_test.cpp; those of
// hundreds of epochs: training_memory_test.cpp.
//
// What is checked after each run, and which broken variant shows that the check can fail. The numbers are those that the checks print.
//
// I1   One decision for each epoch and lineage: SimTraining::check_together(), broken by silence_is_proof; each state: agreement_test.cpp.
// I2   No step is both committed and discarded: SimTrainer::on_standings(), broken by applies_without_vote, believes_own_vote and
//      ignores_results_of_others, and by believes_guests (training_guests_test.cpp).
// I3   All have the same state at each commit, bit for bit that of an undisturbed run with the same memberships: check_states() and
//      SimTrainer::wrong() with reference_step(), broken by divides_its_own_way and takes_shares_in_other_order.
// I4   Nothing of one epoch reaches another one, and no buffer is written after its operation: SimTrainer::wrong(), broken by
//      hears_too_early and takes_buffers_back, and by keeps_guests (training_guests_test.cpp).
// I5   Committed steps are contiguous and are not undone: SimTrainer::commit() and on_state_checked(), broken by
//      skips_lost_step, undoes_step and takes_from_those_behind.
// I6   One successor of an epoch with `wait`, by a loss or by growth, different lineages with `fork`: check_together() and the sizes of the
//      groups that go on, broken by forks, switches_without_agree and, for lineages, by one_lineage of agreement_test.cpp.
// I7   Who is heard by all and goes on is not left out: the sizes of the groups that go on, broken by leads_impatiently.
// I8   Who may go on does so, who knocks gets in, and no operation outlives its world: the groups that go on, broken by looks_for_no_proof,
//      switches_when_forming, leaves_where_one_is_lost and uses_ticket_again.
// I9   Each sample of a batch is used once: wrong(), broken by draws_new_batch.
// I10  The weights' sum is the batch: wrong(), broken by keeps_old_shares and weighs_evenly.
// I11  Who joins computes only from the others' state, and gives none before it has it: check() and wrong(), broken by computes_unfilled,
//      takes_wrong_blocks and gives_unfilled (training_growth_test.cpp).
// I12  Who is left out learns it before it does another step: check_alone(), broken by goes_on_alone.
// I13  Each row of sharded state has one first holder, and a second one on another machine or on its way, with equal bits; where both have
//      gone nobody goes on as if nothing was lost, and no rows are given up that are there: SimTraining::check_rows(), check_holders() and
//      on_rows_lost(), broken by holds_both_on_one_machine, keeps_one_copy, forgets_second_holders, counts_slice_as_all,
//      counts_missing_rows, asks_first_holders_alone, takes_rows_without_vote and goes_on_without_lost_rows (training_rows_test.cpp).
// I14  Bounded memory: what is in use does not grow with the number of epochs, broken by keeps_old_groups, stays_in_world_before and
//      keeps_old_buffers (training_memory_test.cpp). `scripts/soak` counts the memory of real processes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/core/training_runs.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

using Kind = TrainingFault::Kind;

/// Returns what is wrong in any of the runs in which one rank of three has this fault, or "".
std::string run_each_of_three(Kind kind, BrokenTrainer broken) {
  const Window window = window_of(3);
  for (int rank = 0; rank < 3; ++rank)
    for (std::uint64_t event = 0; event < window.size(); ++event)
      if (std::string wrong = run({3, {{kind, rank, 0, event}}, {2}}, window, broken); !wrong.empty()) return wrong;
  return {};
}

/// Returns what goes wrong where some ranks end, at any moments and with any network, or "".
std::string run_random_ends(std::uint64_t seed, BrokenTrainer broken = BrokenTrainer::none) {
  SimRandom random(seed);
  const GroupSetup setup = random_setup(random, seed);
  SimTraining training({setup}, broken);
  const std::uint64_t begin = training.sim().event_count();
  const auto count = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size - 1)));
  const auto first = static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size)));
  for (int i = 0; i < count; ++i) {
    const Kind kind = random.below(2) == 0 ? Kind::process_ends : Kind::process_is_reset;
    training.break_at(begin, {kind, (first + i) % setup.size, 0, random.below(random.below(2) != 0 ? 300 : 3000)});
  }
  training.sim().run_until([&] { return training.sim().event_count() > begin + 3000; }, {.time = Duration::seconds(30)});
  const bool go_on = training.run_until_groups_go_on({setup.size - count}, Duration::seconds(30));
  std::string wrong = training.check();
  return !wrong.empty() || go_on ? wrong : "I7, I8: others go on than those who can";
}

/// Returns what goes wrong after faults of all kinds, or "".
std::string run_random_faults(std::uint64_t seed, BrokenTrainer broken = BrokenTrainer::none) {
  SimRandom random(seed + 31);
  const GroupSetup setup = random_setup(random, seed);
  SimTraining training({setup, random.below(2) == 0 ? OnSplit::wait : OnSplit::fork}, broken);
  const auto any = [&] { return static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size))); };
  for (auto count = 1 + random.below(5); count > 0; --count) {
    TrainingFault fault{static_cast<Kind>(random.below(8)), any(), any(), random.below(random.below(2) != 0 ? 300 : 3000)};
    if (fault.kind == Kind::network_parts) fault.rank = static_cast<int>(random.below(1U << setup.size));
    if (!is_of_link(fault) || fault.rank != fault.other) training.break_at(training.sim().event_count(), fault);
  }
  training.sim().run_for(Duration::milliseconds(static_cast<std::int64_t>(random.below(20'000))));
  training.heal();
  training.sim().run_for(Duration::seconds(40));
  return training.check();
}

void check(Runs& runs, const Case& one, const Window& window) { runs.expect_nothing_wrong(run(one, window), one.size, one.faults); }

}  // namespace

TEST_CASE("whichever rank ends, and after whatever event of a step, no step is lost, done twice or done by halves") {
  Runs runs;
  for (const int size : {2, 3, 4, 5}) {
    const Window window = window_of(size);
    for (int rank = 0; rank < size; ++rank)
      for (std::uint64_t event = 0; event < window.size(); event += every(1)) {
        // One of two ranks ends and the other one's links are reset, in turn.
        const Kind kind = (event + static_cast<std::uint64_t>(rank)) % 2 == 0 ? Kind::process_ends : Kind::process_is_reset;
        check(runs, {size, {{kind, rank, 0, event}}, {size - 1}}, window);
      }
  }
}

TEST_CASE("a second rank may end at any event while the others agree on who goes on, or soon after") {
  Runs runs;
  for (const int size : {3, 4, 5}) {
    const Window window = window_of(size);
    std::uint64_t turn = 0;
    for (int first = 0; first < size; ++first)
      for (int second = 0; second < size; ++second)
        for (std::uint64_t later = 0; later < 120 && first != second; later += every(1))
          for (std::uint64_t event = turn++ % every(397); event < window.size(); event += every(397))
            check(runs, {size, {{Kind::process_ends, first, 0, event}, {Kind::process_is_reset, second, 0, event + later}}, {size - 2}},
                  window);
  }
}

TEST_CASE("a rank that falls silent at any event is left out, and takes no step when it wakes") {
  Runs runs;
  for (const int size : {2, 3, 4, 5}) {
    const Window window = window_of(size);
    for (int rank = 0; rank < size; ++rank)
      for (std::uint64_t event = static_cast<std::uint64_t>(rank); event < window.size(); event += every(size < 4 ? 2 : 5))
        for (const Kind kind : {Kind::stands_still, Kind::power_fails}) {
          // Of two ranks none knows that the other one has ended.
          const std::vector<int> groups = size == 2 ? std::vector<int>{} : std::vector{size - 1};
          // The one that wakes takes leave, which is a proof.
          const bool leaves = size == 2 && kind == Kind::stands_still;
          Case one{size, {{kind, rank, 0, event}}, groups, OnSplit::wait, size > 2 || leaves};
          if (leaves) one.healed = {1};
          check(runs, one, window);
        }
  }
}

TEST_CASE("a rank that wakes three epochs later learns that it was left out") {
  const Window window = window_of(5);
  for (int rank = 0; rank < 5; ++rank)
    for (std::uint64_t event = 0; event < window.size(); event += every(7)) {
      // Of the four others two end in turn, each when those who are left have gone on.
      const int first = (rank + 1) % 5, second = (rank + 2) % 5;
      SimTraining training({calm(5)});
      training.break_at(window.begin, {Kind::stands_still, rank, 0, event});
      CAPTURE(rank, event);
      REQUIRE(training.run_until_groups_go_on({4}, Duration::seconds(30)));
      training.break_at(0, {Kind::process_ends, first});
      REQUIRE(training.run_until_groups_go_on({3}, Duration::seconds(30)));
      training.break_at(0, {Kind::process_ends, second});
      REQUIRE(training.run_until_groups_go_on({2}, Duration::seconds(30)));
      training.heal();
      training.sim().run_for(Duration::seconds(20));
      REQUIRE(training.check() == "");
      CHECK(training.groups_that_go_on() == std::vector{2});
      CHECK(training.trainer(rank).left_out().has_value());
    }
}

TEST_CASE(
    "a link that is cut, reset or deaf from any event on costs one rank, and of two ranks lets none or one or each go on alone until it is "
    "whole") {
  Runs runs;
  for (const int size : {2, 3, 4, 5}) {
    const Window window = window_of(size);
    std::uint64_t turn = 0;
    for (const Kind kind : {Kind::link_is_cut, Kind::link_is_reset, Kind::link_is_deaf})
      for (const OnSplit on_split : {OnSplit::wait, OnSplit::fork})
        for (int rank = 0; rank < size; ++rank)
          for (int other = 0; other < size; ++other)
            for (std::uint64_t event = turn++ % every(61); event < window.size() && rank != other; event += every(61)) {
              // Where only one hears the other, and learns that, it leaves, and the other one goes on once it hears of it.
              const bool forks = on_split == OnSplit::fork, deaf = kind == Kind::link_is_deaf;
              const std::vector<int> of_two = deaf ? std::vector{1} : forks ? std::vector{1, 1} : std::vector<int>{};
              Case one{size, {{kind, rank, other, event}}, size == 2 ? of_two : std::vector{size - 1}, on_split};
              // One of two that hear each other again makes way.
              if (size == 2 && kind == Kind::link_is_cut) one.healed = {1};
              check(runs, one, window);
            }
  }
}

TEST_CASE("the parts of a network that is cut at any event go on as the policy says, never mix, and one of them goes on when it is whole") {
  Runs runs;
  for (const int size : {3, 4, 5}) {
    const Window window = window_of(size);
    for (int side = 1; side + 1 < 1 << (size - 1); ++side) {
      int count = 0;
      for (int rank = 0; rank < size; ++rank) count += side >> rank & 1;
      const int larger = std::max(count, size - count);
      for (std::uint64_t event = static_cast<std::uint64_t>(side); event < window.size(); event += every(23)) {
        const Faults faults{{Kind::network_parts, side, 0, event}};
        // When the network is whole again, one part makes way, or ends what it has begun by itself.
        Case waits{size, faults, 2 * larger > size ? std::vector{larger} : std::vector<int>{}, OnSplit::wait, true};
        Case forks{size, faults, {larger, size - larger}, OnSplit::fork, true};
        waits.healed = forks.healed = {larger};
        check(runs, waits, window);
        check(runs, forks, window);
      }
    }
  }
}

TEST_CASE("whenever ranks end, and whatever their network is like, all the others go on") {
  for (const auto seed : seeds(400)) {
    CAPTURE(seed);
    REQUIRE(run_random_ends(seed) == "");
  }
}

TEST_CASE("whatever breaks in a training, and in whatever order, the invariants hold") {
  for (const auto seed : seeds(800)) {
    CAPTURE(seed);
    REQUIRE(run_random_faults(seed) == "");
  }
}

TEST_CASE("the checks of a training notice each thing that a trainer may do wrong") {
  finds("I2:", run_each_of_three(Kind::process_ends, BrokenTrainer::applies_without_vote));
  finds("I2:", run_each_of_three(Kind::process_ends, BrokenTrainer::believes_own_vote));
  finds("I2:", run_each_of_three(Kind::process_ends, BrokenTrainer::ignores_results_of_others));
  finds("I3:", run({3, {}, {3}}, window_of(3), BrokenTrainer::divides_its_own_way));
  finds("I3:", run({3, {}, {3}}, window_of(3), BrokenTrainer::takes_shares_in_other_order));
  finds("I4: an op", run_seeds(run_random_ends, 1000, BrokenTrainer::hears_too_early));
  finds("I4: a buffer", run_each_of_three(Kind::process_ends, BrokenTrainer::takes_buffers_back));
  finds("I5:", run_each_of_three(Kind::process_ends, BrokenTrainer::skips_lost_step));
  finds("I5:", run_each_of_three(Kind::process_ends, BrokenTrainer::undoes_step));
  finds("I7, I8:", run_seeds(run_random_ends, 1000, BrokenTrainer::leads_impatiently));
  finds("I9:", run_each_of_three(Kind::process_ends, BrokenTrainer::draws_new_batch));
  finds("I10:", run_each_of_three(Kind::process_ends, BrokenTrainer::keeps_old_shares));
  const Window two = window_of(2), five = window_of(5);
  finds("I10:", run({5, {{Kind::process_ends, 1, 0, 0}}, {4}}, five, BrokenTrainer::weighs_evenly));
  finds("I1:", run({2, {{Kind::link_is_cut, 0, 1, two.size() / 2}}, {}}, two, BrokenTrainer::silence_is_proof));
  finds("I6:", run({2, {{Kind::link_is_cut, 0, 1, two.size() / 2}}, {1, 1}}, two, BrokenTrainer::forks));
  finds("I7, I8:", run({2, {{Kind::process_ends, 0, 0, 5}}, {1}}, two, BrokenTrainer::looks_for_no_proof));
  finds("I12:", run_each_of_three(Kind::stands_still, BrokenTrainer::goes_on_alone));
}
