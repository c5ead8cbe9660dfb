// Tests of training with few averages, against the method once more in f64.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cfenv>
#include <ringlet/ringlet.hpp>
#include <utility>
#include <vector>

#include "native/outer/fragment.hpp"
#include "native/outer/pace.hpp"
#include "sim/sim_random.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/outer_model.hpp"
#include "tests/native/outer_reference.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using test::expect;
using test::expect_equal_bits;
using test::failure_of;
using test::outer_bits;
using test::OuterModel;
using test::run_ranks;

TEST_CASE("fragments cover the tree in its order, none is empty, and leaves of one size are shared evenly") {
  SimRandom random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<float> memory(1000);
    Tree tree;
    const int leaves = 1 + static_cast<int>(random.below(12));
    for (int i = 0; i < leaves; ++i) tree.add("p" + std::to_string(i), TensorView(memory.data(), DType::f32, random.below(1000)));
    for (int count = 1; count <= leaves; ++count) {
      const auto ranges = native::cut_fragments(tree, count);
      REQUIRE(ranges.size() == static_cast<std::size_t>(count));
      std::size_t next = 0;
      for (const auto& [begin, end] : ranges) {
        REQUIRE(begin == next);
        REQUIRE(end > begin);
        next = end;
      }
      REQUIRE(next == tree.size());
    }
  }
  std::vector<float> memory(10);
  Tree even;
  for (int i = 0; i < 12; ++i) even.add("p" + std::to_string(i), memory);
  for (const int count : {1, 2, 3, 4, 6, 12})
    for (const auto& [begin, end] : native::cut_fragments(even, count)) CHECK(end - begin == 12U / static_cast<unsigned>(count));
}

TEST_CASE("a slower rank takes as many inner steps as it can while the fastest takes all") {
  using Reports = std::vector<native::InnerReport>;
  CHECK(native::steps_for(50, 1, Reports{{8, 1}, {8, 2}}) == 50);
  CHECK(native::steps_for(50, 2, Reports{{8, 1}, {8, 2}}) == 25);
  CHECK(native::steps_for(50, 3, Reports{{8, 1}, {8, 3}, {0, 0}}) == 17);
  CHECK(native::steps_for(50, 1.09, Reports{{8, 1}, {8, 1.09}}) == 50);
  CHECK(native::steps_for(50, 1e9, Reports{{8, 1}, {8, 1e9}}) == 1);
  CHECK(native::steps_for(50, 0, Reports{{8, 1}, {8, 0}}) == 50);
  CHECK(native::overlapped_steps(50, 0, 50) == 0);
  CHECK(native::overlapped_steps(50, 5, 50) == 5);
  CHECK(native::overlapped_steps(25, 10, 50) == 5);
  CHECK(native::overlapped_steps(1, 50, 50) == 1);
}

TEST_CASE("an inner step, an outer rate of 1 and no momentum average the updates") {
  for (const int size : {1, 2, 3, 4})
    run_ranks(size, [size](Group& world) {
      OuterModel model;
      const int rank = world.rank();
      OuterTrainer trainer(world, model.tree, {.inner_steps = 1, .learning_rate = 1, .momentum = 0});
      std::vector<std::vector<double>> ranks(static_cast<std::size_t>(size), std::vector<double>(model.elements, 0.5));
      trainer.run(6, [&](const InnerStep& step) {
        expect(step.rank == rank && step.ranks == size, "who steps");
        return model.step(rank, step.number + 1);
      });
      for (std::uint64_t number = 1; number <= 6; ++number) {
        double total = 0;
        for (int r = 0; r < size; ++r) total += test::samples_of(r, number);
        for (std::size_t i = 0; i < model.elements; ++i) {
          double mean = 0;
          for (int r = 0; r < size; ++r)
            mean += test::samples_of(r, number) / total * test::moved(ranks[static_cast<std::size_t>(r)][i], r, number, i);
          for (auto& values : ranks) values[i] = mean;
        }
      }
      const std::vector<float> trained = outer_bits(model.tree);
      for (std::size_t i = 0; i < model.elements; ++i) expect(std::abs(trained[i] - ranks[0][i]) < 1e-6, "the plain mean");
      expect_equal_bits(trainer, model.tree);
    });
}

TEST_CASE("the method's parameters are those of f64, with any number of ranks, fragments and overlapped steps") {
  for (const int size : {1, 2, 3})
    for (const int fragments : {1, 2, 6})
      for (const int overlap : {0, 1, 2})
        for (const bool nesterov : {true, false}) {
          if (overlap >= 12 / fragments) continue;
          OuterTrainerOptions options{.inner_steps = 12, .fragments = fragments, .overlap = overlap, .mixing = 0.25, .nesterov = nesterov};
          options.learning_rate = linear_schedule(0.9, 0.5, 10);
          CAPTURE(size, fragments, overlap, nesterov);
          test::OuterReference reference(OuterModel().tree, options, size, OuterModel().elements);
          reference.run(60, [](int, std::uint64_t) { return true; });
          run_ranks(size, [&](Group& world) {
            OuterModel model;
            const int rank = world.rank();
            OuterTrainer trainer(world, model.tree, options);
            std::uint64_t next = 0;
            trainer.run(60, [&](const InnerStep& step) {
              expect(step.number == next++, "the number of the inner step");
              return model.step(rank, step.number);
            });
            expect(trainer.steps() == 60 && trainer.averages() == 5 * static_cast<std::uint64_t>(fragments), "all of it");
            const double furthest = reference.furthest(model.tree);
            expect(furthest < 1e-5, [&] { return "as far away as " + std::to_string(furthest); });
            expect_equal_bits(trainer, model.tree);
          });
        }
}

TEST_CASE("with every wire all ranks have the same bits, and those are near the mean's") {
  const std::vector<std::pair<std::optional<Wire>, double>> wires{{std::nullopt, 1e-5},
                                                                  {Wire(DType::f16), 1e-2},
                                                                  {Wire(DType::bf16), 5e-2},
                                                                  {Wire::int8({.least_elements = 0}), 5e-2},
                                                                  {Wire::int8({.feedback = true, .least_elements = 0}), 5e-2},
                                                                  {Wire::int4({.feedback = true, .least_elements = 0}), 0.5},
                                                                  {Wire::int4({.least_elements = 30}), 0.5}};
  for (const auto& [wire, tolerance] : wires)
    for (const int fragments : {1, 3}) {
      OuterTrainerOptions options{.inner_steps = 6, .fragments = fragments, .overlap = 1, .wire = wire};
      test::OuterReference reference(OuterModel().tree, options, 3, OuterModel().elements);
      reference.run(36, [](int, std::uint64_t) { return true; });
      run_ranks(3, [&, tolerance = tolerance](Group& world) {
        OuterModel model;
        const int rank = world.rank();
        OuterTrainer trainer(world, model.tree, options);
        trainer.run(36, [&](const InnerStep& step) { return model.step(rank, step.number); });
        expect_equal_bits(trainer, model.tree);
        const double furthest = reference.furthest(model.tree);
        expect(furthest < tolerance, [&] { return "as far away as " + std::to_string(furthest); });
      });
    }
}

TEST_CASE("a program that rounds in its own way has the same bits as the others") {
  run_ranks(3, [](Group& world) {
    std::vector<double> values(50, 0.5);
    OuterTrainer trainer(world, Tree{{"values", values}}, {.inner_steps = 2, .momentum = 0.9});
    const int before = std::fegetround();
    if (world.rank() == 1) std::fesetround(FE_UPWARD);
    trainer.run(24, [&](const InnerStep& step) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += 1.0 / (static_cast<double>(i + step.number) + step.rank + 3);
      return static_cast<double>(3 + (step.number + static_cast<std::uint64_t>(step.rank)) % 3);
    });
    std::fesetround(before);
    std::vector<double> all(3 * values.size());
    Group last = trainer.world();
    last.all_gather(values, all);
    for (std::size_t i = 0; i < all.size(); ++i) expect(all[i] == values[i % values.size()], "the same bits on all ranks");
  });
}

TEST_CASE("what does not fit is refused") {
  OuterModel model;
  const auto error_of = [&](const OuterTrainerOptions& options) {
    return failure_of<InvalidArgument>([&] { OuterTrainer(Group(), model.tree, options); });
  };
  CHECK(error_of({.inner_steps = 0}) == "inner_steps is 0; it must be at least 1");
  CHECK(error_of({.inner_steps = 50, .fragments = 4}) == "fragments is 4; it must be at least 1 and divide inner_steps, which is 50");
  CHECK(error_of({.inner_steps = 50, .fragments = 10}) == "fragments is 10, but there are 6 parameters; each fragment needs one");
  CHECK(error_of({.inner_steps = 50, .fragments = 5, .overlap = 10}) ==
        "overlap is 10; it must be at least 0 and below inner_steps / fragments, which is 10");
  CHECK(error_of({.mixing = 1.5}) == "mixing is 1.5; it must be from 0 to 1");
  CHECK(error_of({.momentum = -1}).find("momentum") != std::string::npos);
  CHECK(error_of({.elastic = {.average = {.communication_type = DType::bf16}}}).find("of an OuterTrainer the option wire") !=
        std::string::npos);
  CHECK(error_of({.elastic = {.average = {.weight = 2}}}).find("average.weight is set") != std::string::npos);
  Tensor narrow(DType::bf16, {4});
  CHECK(failure_of<InvalidArgument>([&] { OuterTrainer(Group(), Tree{{"w", narrow}}); }).find("the parameter 'w' is bf16") == 0);

  OuterTrainer trainer(Group(), model.tree, {.inner_steps = 4, .fragments = 2});
  const auto run_error = [&](std::uint64_t steps, const std::function<double(const InnerStep&)>& inner) {
    return failure_of<InvalidArgument>([&] { trainer.run(steps, inner); });
  };
  CHECK(run_error(5, [](const InnerStep&) { return 1.0; }) == "5 inner steps are no multiple of inner_steps / fragments, which is 2");
  CHECK(run_error(4, {}) == "the function of an inner step is empty");
  CHECK(run_error(4, [](const InnerStep&) { return -1.0; }) == "an inner step returned -1 samples; they must be finite and not negative");
  CHECK(run_error(4, [](const InnerStep&) { return 0.0; }).find("no rank has used a sample") == 0);
  CHECK(failure_of<InvalidArgument>([&] { (void)trainer.fragment(2); }) == "there is no fragment 2; there are 2");
  CHECK(trainer.fragment(0).size() + trainer.fragment(1).size() == model.tree.size());
}

TEST_CASE("a rank without samples does not count, and whatever it has is lost") {
  run_ranks(2, [](Group& world) {
    OuterModel model;
    const int rank = world.rank();
    OuterTrainer trainer(world, model.tree, {.inner_steps = 2, .wire = Wire::int8({.least_elements = 0})});
    trainer.run(4, [&](const InnerStep& step) {
      if (rank == 0) return model.step(0, step.number) + 1;
      for (float& value : model.memory[0].values<float>()) value = std::numeric_limits<float>::quiet_NaN();
      return 0.0;
    });
    expect_equal_bits(trainer, model.tree);
    for (const float value : outer_bits(model.tree)) expect(std::isfinite(value), "what counts is finite");
  });
}

TEST_CASE("ranks that take their steps at their own speed have the same bits") {
  run_ranks(3, [](Group& world) {
    OuterModel model;
    const int rank = world.rank();
    OuterTrainer trainer(world, model.tree, {.inner_steps = 10, .fragments = 2, .overlap = 2, .by_speed = true});
    std::uint64_t before = 0;
    trainer.run(40, [&](const InnerStep& step) {
      expect(step.number >= before && step.number < 40, "numbers rise");
      before = step.number + 1;
      double waste = 0;
      for (int i = 0; i < 20'000 * rank; ++i) waste += std::sqrt(static_cast<double>(i));
      return model.step(rank, step.number) + (waste < 0 ? 2 : 1);
    });
    expect_equal_bits(trainer, model.tree);
  });
}

TEST_CASE(
    "ranks whose steps take 1, 2 and 4 seconds take 20, 10 and 5 of them, weighted by their samples, and nobody waits for the slowest") {
  for (const int fragments : {1, 2})
    for (const int overlap : {0, 2}) {
      const int interval = 20 / fragments;
      CAPTURE(fragments, overlap);
      const auto steps_of = [interval](int rank, std::uint64_t average) {
        // Nobody knows the ranks' speeds before the first average.
        const int divisor = average == 0 ? 1 : 1 << rank;
        return (interval + divisor / 2) / divisor;
      };
      OuterTrainerOptions options{.inner_steps = 20, .fragments = fragments, .overlap = overlap, .by_speed = true};
      test::OuterReference reference(OuterModel().tree, options, 3, OuterModel().elements);
      reference.run(80, [](int, std::uint64_t) { return true; }, steps_of);
      run_ranks(3, [&](Group& world) {
        OuterModel model;
        const int rank = world.rank();
        double now = 1000;
        std::vector<double> busy(static_cast<std::size_t>(80 / interval));
        OuterTrainerOptions own = options;
        own.clock = [&] { return now; };
        OuterTrainer trainer(world, model.tree, own);
        trainer.run(80, [&](const InnerStep& step) {
          now += 1 << rank;
          busy[step.number / static_cast<std::uint64_t>(interval)] += 1 << rank;
          return model.step(rank, step.number);
        });
        expect_equal_bits(trainer, model.tree);
        const double furthest = reference.furthest(model.tree);
        expect(furthest < 1e-5, [&] { return "as far away as " + std::to_string(furthest); });
        expect(busy[0] == interval << rank, "all steps at first");
        // Half a step more or less is what whole steps allow.
        for (std::size_t i = 1; i < busy.size(); ++i) expect(std::abs(busy[i] - interval) <= (1 << rank) / 2.0, "as long as the others");
      });
    }
}
