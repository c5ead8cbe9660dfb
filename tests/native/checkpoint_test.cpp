#include <catch2/catch.hpp>
#include <limits>
#include <numeric>

#include "tests/native/checkpoint_state.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

std::vector<double> weights_for(int ranks) {
  std::vector<double> weights(static_cast<std::size_t>(ranks));
  std::iota(weights.begin(), weights.end(), ranks > 1 ? 0.0 : 1.0);  // the first rank has no rows
  return weights;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("what any number of ranks has saved, any number loads") {
  const int savers = GENERATE(1, 2, 3, 4);
  const bool weighted = GENERATE(false, true);
  const bool shared = GENERATE(true, false);
  CAPTURE(savers, weighted, shared);
  const ScratchDirectory scratch;
  const auto directory_of = [&](int rank) { return shared ? scratch.path() / "all" : scratch.of(rank); };
  save_state(savers, directory_of, 120, 3, weighted ? weights_for(savers) : std::vector<double>());
  for (int loaders = shared ? 1 : savers; loaders <= 5; ++loaders) {
    CAPTURE(loaders);
    CHECK(load_state(loaders, directory_of, 3, weighted ? std::vector<double>() : weights_for(loaders)) == 120u);
    // Every disk is now at another rank than before.
    const auto moved = [&](int rank) { return directory_of(loaders - 1 - rank); };
    CHECK(load_state(loaders, moved, 3) == 120u);
  }
}

TEST_CASE("tensors of many blocks travel between ranks without a shared disk") {
  constexpr std::int64_t kRows = 1'500'000;  // 30 MB
  const ScratchDirectory scratch;
  run_ranks(3, [&](Group& world) {
    TrainingState state(world.rank(), 3, 5, {}, kRows);
    const Checkpoint checkpoint = state.checkpoint();
    save_checkpoint(world, scratch.of(world.rank()), checkpoint, {.step = 1});
    TrainingState loaded(world.rank(), 3, 0, {1, 0, 2}, kRows);
    Checkpoint into = loaded.checkpoint();
    expect(load_checkpoint(world, scratch.of((world.rank() + 1) % 3), into) == 1u, "step");
    expect(loaded.wrong(5).empty(), loaded.wrong(5));
  });
  SUCCEED();
}

TEST_CASE("where there is no checkpoint, there is nothing to load") {
  const ScratchDirectory scratch;
  CHECK(load_state(2, [&](int) { return scratch.path() / "nowhere"; }, 1) == std::nullopt);
  fs::create_directory(scratch.path() / "step-notes");
  CHECK(load_state(2, [&](int) { return scratch.path(); }, 1) == std::nullopt);
  Group alone;
  CHECK(latest_checkpoint(alone, scratch.path()) == std::nullopt);
}

TEST_CASE("the newest are kept, any of them is loaded, and one that is there is replaced") {
  const ScratchDirectory scratch;
  const auto here = [&](int) { return scratch.path(); };
  fs::create_directories(scratch.path() / ".saving-step-00000005-0123456789abcdef");
  for (const unsigned step : {10u, 20u, 30u}) save_state(2, here, step, step);
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"step-00000020", "step-00000030"});
  CHECK(load_state(3, here, 20, {}, 20) == 20u);
  CHECK(load_state(1, here, 30) == 30u);
  CHECK_THAT(load_error(2, here, 10), Contains("there is no checkpoint of step 10; there are: 30, 20"));
  save_state(3, here, 30, 31);
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"step-00000020", "step-00000030"});
  CHECK(names_in(scratch.path() / "step-00000030").size() == 4);
  CHECK(load_state(2, here, 31) == 30u);
  save_state(1, here, 123'456'789'012, 40, {}, 1);
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"step-123456789012"});
  Group alone;
  CHECK(latest_checkpoint(alone, scratch.path()) == 123'456'789'012u);
}

TEST_CASE("values come back to the bit") {
  const ScratchDirectory scratch;
  Group alone;
  Checkpoint saved;
  saved.set("nan", std::numeric_limits<double>::quiet_NaN()).set("infinite", -std::numeric_limits<double>::infinity()).set("zero", -0.0);
  saved.set("most", std::numeric_limits<std::uint64_t>::max())
      .set("least", std::numeric_limits<std::int64_t>::min())
      .set("text", "zähler \"1\"\n");
  save_checkpoint(alone, scratch.path(), saved, {.step = 0});
  Checkpoint loaded;
  REQUIRE(load_checkpoint(alone, scratch.path(), loaded) == 0u);
  CHECK(std::isnan(loaded.get<double>("nan")));
  CHECK(loaded.get<double>("infinite") == -std::numeric_limits<double>::infinity());
  CHECK(std::signbit(loaded.get<double>("zero")));
  CHECK(loaded.get<std::uint64_t>("most") == std::numeric_limits<std::uint64_t>::max());
  CHECK(loaded.get<std::int64_t>("least") == std::numeric_limits<std::int64_t>::min());
  CHECK(loaded.get<std::string>("text") == "zähler \"1\"\n");
  CHECK_THROWS_WITH(loaded.get<double>("text"), Contains("of type text, not double"));
  CHECK_THROWS_WITH(loaded.get<double>("tixt"), Contains("no value 'tixt'"));
  loaded.set_values({{"only", 1.5}});
  CHECK(loaded.values().size() == 1);
  CHECK(loaded.get<double>("only") == 1.5);
}

TEST_CASE("a state that is not the one that was saved is refused on every rank") {
  const ScratchDirectory scratch;
  std::vector<float> w(6), b(2);
  std::vector<double> wide(6);
  const auto load = [&](Group& world, const Tree& tree) {
    Checkpoint checkpoint;
    checkpoint.add("p", tree);
    load_checkpoint(world, scratch.path(), checkpoint);
  };
  run_ranks(2, [&](Group& world) {
    Checkpoint checkpoint;
    checkpoint.add("p", Tree{{"w", w}, {"b", b}});
    save_checkpoint(world, scratch.path(), checkpoint, {.step = 4});
  });
  using Kind = CheckpointMismatch::Kind;
  const auto expect_mismatch = [&](const std::string& part, Kind kind, const std::string& tensor, const Tree& tree) {
    expect_error<MismatchError>(part, [&](Group& world) {
      try {
        load(world, tree);
      } catch (const CheckpointMismatch& error) {
        expect(error.kind() == kind && error.tensor() == tensor, "the kind and the tensor of: " + std::string(error.what()));
        throw;
      }
    });
  };
  expect_mismatch("no tensor 'p.c'", Kind::not_saved, "p.c", Tree{{"w", w}, {"c", b}});
  expect_mismatch("a tensor 'p.b' that is not loaded", Kind::not_loaded, "p.b", Tree{{"w", w}});
  expect_mismatch("'p.w' is f32 (6,) in the checkpoint of step 4 and f64 (6,) here", Kind::other_type, "p.w", Tree{{"w", wide}, {"b", b}});
  expect_mismatch("and f32 (2, 3) here", Kind::other_type, "p.w", Tree{{"w", TensorView(w.data(), DType::f32, Shape{2, 3})}, {"b", b}});
}

TEST_CASE("what cannot be saved is refused on every rank, whoever is wrong") {
  const ScratchDirectory scratch;
  std::vector<float> w(6), half(3);
  const ShardLayout layout(Tree{{"w", w}}, 2);
  const ShardLayout for_three(Tree{{"w", w}}, 3);
  const auto save = [&](Group& world, const Checkpoint& checkpoint, int keep = 2) {
    save_checkpoint(world, scratch.path(), checkpoint, {.step = 4, .keep = keep});
  };
  expect_error<InvalidArgument>("rank 1: 'o.w.m' is f32 (6,) where this rank's shard of (6,) is (3,)", [&](Group& world) {
    Checkpoint checkpoint;
    checkpoint.add_slots("o", Tree{{"w.m", world.rank() == 0 ? TensorView(half) : TensorView(w)}}, layout);
    save(world, checkpoint);
  });
  expect_error<InvalidArgument>("laid out over 3 ranks in a group of 2", [&](Group& world) {
    Checkpoint checkpoint;
    checkpoint.add_sharded("s", Tree{{"w", TensorView(w.data(), DType::f32, 2)}}, for_three);
    save(world, checkpoint);
  });
  expect_error<InvalidArgument>("rank 0: keep is 0", [&](Group& world) { save(world, {}, world.rank()); });
  expect_error<InvalidArgument>("value of text", [&](Group&) { Checkpoint().set("text", "\xff"); });
  expect_error<InvalidArgument>("value's name '\xff' is not valid UTF-8", [&](Group&) { Checkpoint().set("\xff", 1.0); });
  expect_error<MismatchError>("rank 0 has the value 'seed' 0, rank 1 has the value 'seed' 1",
                              [&](Group& world) { save(world, Checkpoint().set("seed", world.rank())); });
  expect_error<MismatchError>("rank 0 has the tensor 'p.w' f32 (6,), rank 1 has nothing more", [&](Group& world) {
    Checkpoint checkpoint;
    if (world.rank() == 0) checkpoint.add("p", Tree{{"w", w}});
    save(world, checkpoint);
  });
  CHECK(fs::is_empty(scratch.path()));
  Checkpoint checkpoint;
  CHECK_THROWS_WITH(checkpoint.add("", Tree{{"w", w}}), Contains("need a name"));
  checkpoint.add("p", Tree{{"w", w}});
  CHECK_THROWS_WITH(checkpoint.add("p", Tree{{"w", w}}), Contains("'p.w' already"));
  CHECK_THROWS_WITH(checkpoint.add_sharded("s", Tree{{"v", w}}, layout), Contains("no tensor 'v'"));
  CHECK_THROWS_WITH(checkpoint.add_slots("o", Tree{{"w", w}}, layout), Contains("\"parameter.slot\""));
}

namespace {

/// Shards of two parameters, their optimizer, and gradients that depend only on the element and the step.
struct ShardedTraining {
  ShardedTraining(int shard_rank, int ranks, const std::vector<double>& weights)
      : rank(shard_rank),
        w(DType::f32, Shape{7, 3}),
        b(DType::f32, Shape{5}),
        layout(Tree{{"layer.w", w}, {"layer.b", b}}, ranks, weights) {
    for (Tensor* tensor : {&w, &b}) std::iota(tensor->values<float>().begin(), tensor->values<float>().end(), 0.5f);
    parameters = layout.shard(full(), rank);
    optimizer.init(parameters);
  }
  Tree full() { return Tree{{"layer.w", w}, {"layer.b", b}}; }
  void step() {
    Tensor gw = Tensor::copy_of(w), gb = Tensor::copy_of(b);
    for (Tensor* tensor : {&gw, &gb})
      for (std::size_t i = 0; i < tensor->count(); ++i)
        tensor->values<float>()[i] = 0.25f * static_cast<float>(i) - static_cast<float>(optimizer.step());
    optimizer.apply_gradients(layout.shard(Tree{{"layer.w", gw}, {"layer.b", gb}}, rank), parameters);
  }
  Checkpoint checkpoint() {
    Checkpoint state;
    return state.add_sharded("parameters", parameters, layout).add_slots("optimizer", optimizer.state(), layout);
  }

  int rank;
  Tensor w, b;
  ShardLayout layout;
  Tree parameters;
  AdamW optimizer{0.1};
};

}  // namespace

TEST_CASE("training goes on from a checkpoint of sharded parameters and their optimizer as if it had not stopped") {
  const ScratchDirectory scratch;
  ShardedTraining whole(0, 1, {});
  for (int i = 0; i < 4; ++i) whole.step();
  run_ranks(3, [&](Group& world) {
    ShardedTraining training(world.rank(), 3, {0, 1, 2});
    for (int i = 0; i < 2; ++i) training.step();
    save_checkpoint(world, scratch.of(world.rank()), training.checkpoint(), {.step = training.optimizer.step()});
  });
  run_ranks(4, [&](Group& world) {
    ShardedTraining training(world.rank(), 4, {});
    Checkpoint state = training.checkpoint();
    const auto step = load_checkpoint(world, scratch.of(world.rank()), state);
    expect(step == 2u, "step");
    training.optimizer.set_step(*step);
    for (int i = 0; i < 2; ++i) training.step();
    for (const Leaf& leaf : training.layout.shard(whole.full(), world.rank())) {
      const Tensor mine = Tensor::copy_of(training.parameters.at(leaf.name));
      const Tensor wanted = Tensor::copy_of(leaf.values);
      expect(std::equal(mine.values<float>().begin(), mine.values<float>().end(), wanted.values<float>().begin()), leaf.name);
    }
  });
  SUCCEED();
}
