// Tests of training with few averages whose ranks come and go.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <ringlet/ringlet.hpp>
#include <set>
#include <utility>
#include <vector>

#include "tests/native/expect.hpp"
#include "tests/native/joiners.hpp"
#include "tests/native/outer_model.hpp"
#include "tests/native/outer_reference.hpp"
#include "tests/native/ranks.hpp"
#include "tests/temporary_directory.hpp"

using namespace ringlet;
using test::expect;
using test::expect_equal_bits;
using test::outer_bits;
using test::OuterModel;
using test::run_elastic;

namespace {

struct GoesAway {};

}  // namespace

TEST_CASE("whichever rank goes in whichever inner step, the others keep theirs and average without it") {
  constexpr std::uint64_t kSteps = 16;
  for (const int fragments : {1, 2})
    for (const int leaver : {0, 1, 2})
      for (std::uint64_t at = 0; at < kSteps; ++at) {
        OuterTrainerOptions options{.inner_steps = 4, .fragments = fragments};
        CAPTURE(fragments, leaver, at);
        const auto interval = static_cast<std::uint64_t>(4 / fragments);
        test::OuterReference reference(OuterModel().tree, options, 3, OuterModel().elements);
        reference.run(kSteps, [&](int rank, std::uint64_t average) { return rank != leaver || average < at / interval; });
        run_elastic(3, [&](Group& world) {
          OuterModel model;
          const int origin = world.rank();
          std::set<std::uint64_t> taken;
          OuterTrainer trainer(std::exchange(world, Group()), model.tree, options);
          try {
            trainer.run(kSteps, [&](const InnerStep& step) {
              if (origin == leaver && step.number == at) throw GoesAway();
              expect(taken.insert(step.number).second, "no inner step twice");
              return model.step(origin, step.number);
            });
          } catch (const GoesAway&) {
            return;
          }
          expect(trainer.world().size() == 2 && taken.size() == kSteps, "who is left");
          const double furthest = reference.furthest(model.tree);
          expect(furthest < 1e-5, [&] { return "as far away as " + std::to_string(furthest); });
          expect_equal_bits(trainer, model.tree);
        });
      }
}

TEST_CASE("ranks that go while differences are on their way, and epochs that are revoked then, leave the others with the same bits") {
  for (const bool revokes : {false, true})
    for (const std::uint64_t at : {0, 1, 2, 3, 6, 7, 11}) {
      OuterTrainerOptions options{
          .inner_steps = 8, .fragments = 2, .overlap = 3, .wire = Wire::int8({.feedback = true, .least_elements = 0})};
      CAPTURE(revokes, at);
      run_elastic(3, [&](Group& world) {
        OuterModel model;
        const int origin = world.rank();
        OuterTrainer trainer(std::exchange(world, Group()), model.tree, options);
        try {
          trainer.run(24, [&](const InnerStep& step) {
            if (origin == 1 && step.number == at && !revokes) throw GoesAway();
            if (origin == 1 && step.number == at) Group(trainer.world()).revoke();
            return model.step(origin, step.number);
          });
        } catch (const GoesAway&) {
          return;
        }
        expect(trainer.world().size() == (revokes ? 3 : 2) && trainer.averages() == 6, "all is done");
        expect_equal_bits(trainer, model.tree);
      });
    }
}

TEST_CASE("a rank that joins gets the shared parameters and the outer momentum, and all go on with the same bits") {
  constexpr std::uint64_t kAverages = 12;
  test::Doors doors(2);
  std::optional<test::Process> newcomer;
  // Nobody takes the average with this number before the new rank is there.
  std::atomic<int> ranks{0};
  const auto train = [&](Group world, int id, std::uint64_t* first) {
    OuterModel model;
    if (id == 2) model.memory[0].values<float>()[0] = 100;  // which the others' value replaces
    int joined = 0;
    OuterTrainerOptions options{.inner_steps = 4, .fragments = 2, .overlap = 1};
    options.elastic.min_ranks = 3;
    options.elastic.on_change = [&](const MembershipChange& change) { joined += change.joined; };
    if (first != nullptr) options.elastic.on_state = [&](const Checkpoint&, std::uint64_t average) { *first = average + 1; };
    OuterTrainer trainer(std::move(world), model.tree, options);
    trainer.run(2 * kAverages, [&](const InnerStep& step) {
      expect(step.ranks == 3 && model.memory[0].values<float>()[0] < 2, "the others' values, with all three ranks");
      return model.step(id, step.number);
    });
    expect(joined == (id == 2 ? 0 : 1), "one has come");
    expect_equal_bits(trainer, model.tree);
    ++ranks;
  };
  run_elastic(2, [&](Group& world) {
    const int rank = world.rank();
    doors.open(world);
    if (rank == 0)
      newcomer.emplace([&] {
        std::uint64_t first = 0;
        train(init(test::joiner_options(doors.of(0))), 2, &first);
        expect(first > 0, "it has been given the state");
      });
    train(std::exchange(world, Group()), rank, nullptr);
  });
  newcomer->join();
  CHECK(ranks == 3);
}

TEST_CASE("a rank that joins learns from the others how they train before it has a trainer") {
  test::Doors doors(2);
  std::optional<test::Process> newcomer;
  std::atomic<int> ended{0};
  const auto train = [&](Group world, int id, std::vector<std::int32_t> settings) {
    OuterModel model;
    int worlds = 0, states = 0;
    OuterTrainerOptions options{.inner_steps = settings[0], .fragments = settings[1]};
    options.elastic.min_ranks = 3;
    options.elastic.on_world = [&](Group next) {
      expect(states == 0 || id < 2, "before the state");
      next.broadcast(settings, 0);
      ++worlds;
    };
    options.elastic.on_state = [&](const Checkpoint&, std::uint64_t) { ++states; };
    OuterTrainer trainer(std::move(world), model.tree, options);
    trainer.run(12, [&](const InnerStep& step) { return model.step(id, step.number); });
    expect(worlds == (id == 2 ? 0 : 1), "how often it ran");
    expect_equal_bits(trainer, model.tree);
    ++ended;
  };
  run_elastic(2, [&](Group& world) {
    const int rank = world.rank();
    doors.open(world);
    if (rank == 0)
      newcomer.emplace([&] {
        Group joined = init(test::joiner_options(doors.of(0)));
        std::vector<std::int32_t> settings(2);
        joined.broadcast(settings, 0);
        train(std::move(joined), 2, settings);
      });
    train(std::exchange(world, Group()), rank, {6, 2});
  });
  newcomer->join();
  CHECK(ended == 3);
}

TEST_CASE("what runs in each new world runs again where a rank goes in its midst") {
  std::atomic<int> worlds_of_first{0};
  run_elastic(3, [&](Group& world) {
    OuterModel model;
    const int origin = world.rank();
    OuterTrainerOptions options{.inner_steps = 4};
    options.elastic.on_world = [&](Group next) {
      if (origin == 2) throw GoesAway();
      if (origin == 0) ++worlds_of_first;
      std::vector<std::int32_t> ranks{1};
      next.all_sum(ranks);
      expect(ranks[0] == 1 && next.size() == 1, "only the second world has an answer");
    };
    OuterTrainer trainer(std::exchange(world, Group()), model.tree, options);
    try {
      trainer.run(8, [&](const InnerStep& step) {
        if (origin == 1 && step.number == 5) throw GoesAway();
        return model.step(origin, step.number);
      });
      expect(origin == 0 && trainer.averages() == 2, "who is left");
    } catch (const GoesAway&) {
      expect(origin != 0, "who goes");
    }
  });
  CHECK(worlds_of_first == 2);
}

TEST_CASE("a rank joins in the middle, and the momentum it gets is the others'") {
  // With a rate of 0 until then, what joins late differs from the others only by the momentum, which the last averages show.
  test::Doors doors(2);
  std::optional<test::Process> newcomer;
  const auto train = [&](Group world, int id, const std::function<void(const OuterTrainer&, const InnerStep&)>& at) {
    OuterModel model;
    std::uint64_t began = 0, end = 0;
    OuterTrainerOptions options{.inner_steps = 2, .momentum = 0.99};
    options.elastic.on_state = [&](const Checkpoint& state, std::uint64_t average) {
      began = average;
      for (const Checkpoint::Entry& entry : state.entries()) {
        if (entry.name != "outer_optimizer.leaf4.v") continue;
        expect(average == 0 || *reinterpret_cast<const float*>(entry.values.data()) != 0, "a momentum");
      }
    };
    OuterTrainer trainer(std::move(world), model.tree, options);
    try {
      trainer.run(2'000'000, [&](const InnerStep& step) {
        if (at) at(trainer, step);
        if (step.ranks == 3 && end == 0) end = step.number - step.number % 2 + 20;
        if (end > 0 && step.number >= end) throw GoesAway();
        return model.step(id, step.number);
      });
    } catch (const GoesAway&) {
    }
    expect(end > 0 && (id < 2 || began > 0), "there were three");
    return outer_bits(trainer.shared_parameters());
  };
  std::vector<std::vector<float>> bits(3);
  run_elastic(2, [&](Group& world) {
    const int rank = world.rank();
    doors.open(world);
    bool asked = false;
    const auto at = [&](const OuterTrainer& trainer, const InnerStep& step) {
      if (rank == 0 && step.number >= 20 && !std::exchange(asked, true))
        newcomer.emplace([&, door = trainer.world().door()] { bits[2] = train(init(test::joiner_options(door)), 2, {}); });
    };
    bits[static_cast<std::size_t>(rank)] = train(std::exchange(world, Group()), rank, at);
  });
  newcomer->join();
  CHECK(bits[0] == bits[1]);
  CHECK(bits[0] == bits[2]);
}

TEST_CASE("a training is saved with its outer momentum, and other ranks go on from there") {
  const test::TemporaryDirectory scratch;
  const auto part = [&](int size, std::uint64_t steps, std::uint64_t first, int fragments) {
    std::vector<float> bits;
    test::run_ranks(size, [&](Group& world) {
      OuterModel model;
      const int rank = world.rank();
      OuterTrainerOptions options{.inner_steps = 4, .fragments = fragments};
      options.elastic.checkpoint = scratch.path();
      OuterTrainer trainer(world, model.tree, options);
      std::optional<std::uint64_t> began;
      trainer.run(steps, [&](const InnerStep& step) {
        if (!began) began = step.number;
        return model.step(rank, step.number);
      });
      expect(began == first, "where it begins");
      expect_equal_bits(trainer, model.tree);
      if (rank == 0) bits = outer_bits(model.tree);
    });
    return bits;
  };
  (void)part(2, 8, 0, 1);
  const std::vector<float> resumed = part(3, 16, 8, 1);
  test::OuterReference reference(OuterModel().tree, {.inner_steps = 4}, 3, OuterModel().elements);
  reference.run(16, [](int rank, std::uint64_t average) { return rank < 2 || average >= 2; });
  double furthest = 0;
  for (std::size_t i = 0; i < resumed.size(); ++i) furthest = std::max(furthest, std::abs(resumed[i] - reference.shared[i]));
  CHECK(furthest < 1e-5);
  CHECK(test::failure_of<InvalidArgument>([&] { part(1, 20, 16, 2); }) ==
        "the other ranks, or the checkpoint, train with 4 inner steps and 1 fragments, and this rank with 4 and 2");
}
