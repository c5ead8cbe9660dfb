// Tests of how ranks of a training get the state of others.
#include <catch2/catch.hpp>
#include <ringlet/ringlet.hpp>
#include <string>
#include <vector>

#include "core/elastic/state_sync.hpp"
#include "native/procedure_driver.hpp"
#include "native/shared_group.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using test::expect;
using test::expect_blame;
using test::failure_of;
using test::run_ranks;

TEST_CASE("ranks that begin with another state get that of rank 0") {
  for (const int other : {-1, 1, 2}) {
    run_ranks(3, [&](Group& world) {
      // Several blocks, with gaps between the elements, and what has no elements.
      std::vector<float> memory(2 * 1'300'000, static_cast<float>(world.rank() == other ? 5 : 1));
      for (std::size_t i = 0; i < memory.size(); ++i) memory[i] += static_cast<float>(i % 251);
      const std::vector<float> own = memory;
      const std::int64_t strides[]{2};
      const TensorView gaps(memory.data(), DType::f32, Shape{1'300'000}, strides);
      std::vector<std::uint8_t> odd{1, 2, static_cast<std::uint8_t>(world.rank() == other ? 9 : 3)};
      std::vector<double> last(70'001, world.rank() == other ? 0.25 : 0.5);
      Checkpoint state;
      state.add("model", Tree{{"odd", odd}, {"none", TensorView(nullptr, DType::f32, Shape{0, 4})}, {"gaps", gaps}, {"last", last}});
      state.set("seed", world.rank() == other ? 8 : 7).set("rate", 0.1);
      int replaced = 0;
      ElasticTrainerOptions options;
      options.on_state = [&](const Checkpoint& now, std::uint64_t step) {
        ++replaced;
        expect(step == 0 && now.get<std::int64_t>("seed") == 7 && now.get<double>("rate") == 0.1, "the values");
      };
      ElasticTrainer trainer(world, state, options);
      trainer.run({.steps = 0, .batch = 1}, [](Step&) {});
      expect(replaced == (world.rank() == other ? 1 : 0), "only who differs is told");
      expect(odd == std::vector<std::uint8_t>({1, 2, 3}) && last == std::vector<double>(70'001, 0.5), "the tensors");
      for (std::size_t i = 0; i < memory.size(); ++i)
        expect(memory[i] == (i % 2 == 0 ? 1 + static_cast<float>(i % 251) : own[i]), [&] { return "element " + std::to_string(i); });
      expect(trainer.state().get<std::int64_t>("seed") == 7, "the seed");
    });
  }
}

TEST_CASE("the ranks with the most steps hand their state to all others, and to those who lack it") {
  run_ranks(5, [](Group& world) {
    const int rank = world.rank();
    // Ranks 1, 3 and 4 have done two steps; rank 4 otherwise than the others. Rank 2 has nothing, whatever it says.
    std::vector<std::int32_t> values(3'000'000, rank == 4 ? 4 : rank % 2 == 1 ? 1 : 0);
    const auto sync_with = [&](const Standing& mine) {
      StateSync sync(world.shared().engine(), world.shared().agreements(), Tree{{"all", values}}, rank % 2 == 1 ? "theirs" : "others",
                     mine);
      native::ProcedureDriver({world}, Stream{}).drive(sync);
      expect(sync.values() == "theirs", sync.values());
      return sync.plan();
    };
    const HandOver plan = sync_with({rank == 2, rank == 0 ? 1U : rank == 2 ? 9U : 2U});
    expect(plan.givers == std::vector<int>({1, 3}) && plan.takers == std::vector<int>({0, 2, 4}) && plan.step == 2, "who gives");
    expect(values == std::vector<std::int32_t>(3'000'000, 1), "the state");
    expect(failure_of<PeerLost>([&] { sync_with({true, 0}); }) == "all ranks that had the training's state are lost", "nobody has it");
  });
}

TEST_CASE("a rank that hands over values which cannot be read is blamed") {
  const std::string text = GENERATE("", "[", "7", R"({"seed":["i64"]})", R"({"seed":["i64","x"]})");
  CAPTURE(text);
  std::vector<float> values(4), others(4);
  expect_blame(
      "the values of the training's state",
      [&](Group& world) {
        Checkpoint state;
        state.add("model", Tree{{"weight", values}}).set("seed", 7);
        ElasticTrainer trainer(world, state);
        trainer.run({.steps = 9, .batch = 1}, [](Step&) {});
      },
      [&](Group& world) {
        // As ElasticTrainer does, as the rank with the most steps.
        const std::vector<std::uint64_t> own{0, 5, 0, 0, 1, 9, 1, 0, 0};
        std::vector<std::uint64_t> told(18);
        world.all_gather(own, told);
        StateSync sync(world.shared().engine(), world.shared().agreements(), Tree{{"model.weight", others}}, text, {false, 5});
        native::ProcedureDriver({world}, Stream{}).drive(sync);
      });
}

TEST_CASE("ranks that do not train the same are told what differs") {
  run_ranks(2, [](Group& world) {
    std::vector<float> values(world.rank() == 0 ? 4 : 5);
    Checkpoint state;
    state.add("model", Tree{{"weight", values}});
    ElasticTrainer trainer(world, state);
    const std::string text = failure_of<MismatchError>([&] { trainer.run({.steps = 1, .batch = 2}, [](Step&) {}); });
    expect(text.find("model.weight") != std::string::npos, text);
  });
}
