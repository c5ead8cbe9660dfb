// Tests of addends in checkpoints: what each rank has of its own, and of which only the sum counts.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <new>
#include <ringlet/ringlet.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "native/checkpoint/addends.hpp"
#include "tests/native/checkpoint_state.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

/// What one rank has of addends.
struct SomeAddends final : detail::Addends {
  enum class Call : std::uint8_t { none, own, wants, take };

  std::map<std::string, std::vector<float>> values;
  bool has_taken = false;
  bool wants_all = true;
  Call lacks_memory = Call::none;  // in that call
  std::size_t told_count = 0;      // 0: the true one

  std::map<std::string, std::span<float>> own() override {
    need_memory(Call::own);
    std::map<std::string, std::span<float>> all;
    for (auto& [name, own] : values) all.emplace(name, std::span(own.data(), told_count > 0 ? told_count : own.size()));
    return all;
  }
  bool wants(const std::string& /*name*/) const override {
    need_memory(Call::wants);
    return wants_all;
  }
  void need_memory(Call call) const {
    if (lacks_memory == call) throw std::bad_alloc();
  }
  void take(std::map<std::string, std::vector<float>> taken) override {
    need_memory(Call::take);
    values = std::move(taken);
    has_taken = true;
  }
};

std::vector<float> addends_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  // Sums of these are exact.
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 97) / 8 - static_cast<float>((rank + 1) * 3);
  return values;
}

}  // namespace

TEST_CASE("addends come back to their ranks to the bit, and to another number of ranks with the same sum") {
  const int savers = GENERATE(1, 2, 3, 4);
  const bool shared = GENERATE(true, false);
  // Those of the second name only ranks with an odd number have, as where a rank has just joined.
  const std::map<std::string, std::size_t> lengths{{"0", 1}, {"layer.weight", 70'003}, {"one", 513}};
  CAPTURE(savers, shared);
  const ScratchDirectory scratch;
  const auto directory_of = [&](int rank) { return shared ? scratch.path() / "all" : scratch.of(rank); };
  const auto has = [](int rank, const std::string& name) { return name != "layer.weight" || rank % 2 == 1; };
  run_ranks(savers, [&](Group& world) {
    const auto addends = std::make_shared<SomeAddends>();
    for (const auto& [name, length] : lengths)
      if (has(world.rank(), name)) addends->values[name] = addends_of(world.rank(), length);
    const auto other = std::make_shared<SomeAddends>();
    other->values["x"] = {1, 2, 3};
    std::vector<float> whole(5, 2);
    Checkpoint checkpoint;
    checkpoint.add("p", Tree{{"w", whole}}).add_addends("left", addends).add_addends("unwanted", other);
    save_checkpoint(world, directory_of(world.rank()), checkpoint, {.step = 7});
  });
  for (int loaders = shared ? 1 : savers; loaders <= 5; ++loaders) {
    CAPTURE(loaders);
    run_ranks(loaders, [&](Group& world) {
      const auto addends = std::make_shared<SomeAddends>(), missing = std::make_shared<SomeAddends>();
      addends->values["before"] = missing->values["before"] = {1};
      std::vector<float> whole(5);
      Checkpoint checkpoint;
      checkpoint.add("p", Tree{{"w", whole}}).add_addends("left", addends).add_addends("missing", missing);
      // Who wants no addends loads the rest.
      expect(load_checkpoint(world, directory_of(world.rank()), checkpoint) == 7u && whole == std::vector<float>(5, 2), "the tensors");
      expect(addends->has_taken && missing->has_taken && missing->values.empty(), "what is not there is taken away");
      for (const auto& tensor : lengths) {
        const std::string& name = tensor.first;
        const std::size_t length = tensor.second;
        std::vector<float> own = addends->values[name];
        if (loaders == savers) {
          expect(own == (has(world.rank(), name) ? addends_of(world.rank(), length) : std::vector<float>()), name);
          continue;
        }
        own.resize(length);
        const auto ranks_with_some = [&] {
          std::vector<float> some(length);
          for (std::size_t i = 0; i < length; ++i) some[i] = own[i] != 0 ? 1.0F : 0.0F;
          world.all_sum(some);
          return *std::max_element(some.begin(), some.end());
        };
        expect(ranks_with_some() <= 1, "each element is at one rank");
        world.all_sum(own);
        std::vector<float> sum(length);
        for (int rank = 0; rank < savers; ++rank) {
          const std::vector<float> addends_then = has(rank, name) ? addends_of(rank, length) : std::vector<float>(length);
          for (std::size_t i = 0; i < length; ++i) sum[i] += addends_then[i];
        }
        expect(own == sum, "the sum of " + name);
      }
    });
  }
}

TEST_CASE("addends that do not fit together are refused on every rank") {
  const ScratchDirectory scratch;
  expect_error<MismatchError>("'left.x'", [&](Group& world) {
    const auto addends = std::make_shared<SomeAddends>();
    addends->values["x"].resize(static_cast<std::size_t>(3 + world.rank()));
    Checkpoint checkpoint;
    checkpoint.add_addends("left", addends);
    save_checkpoint(world, scratch.path(), checkpoint, {.step = 1});
  });
  expect_error<InvalidArgument>("the checkpoint has 'left.x' already", [&](Group& world) {
    const auto addends = std::make_shared<SomeAddends>();
    addends->values["x"].resize(3);
    std::vector<float> whole(5);
    Checkpoint checkpoint;
    checkpoint.add("left", Tree{{"x", whole}}).add_addends("left", addends);
    save_checkpoint(world, scratch.path(), checkpoint, {.step = 1});
  });
  Checkpoint twice;
  twice.add_addends("left", std::make_shared<SomeAddends>());
  for (const char* name : {"left", "left.x"})
    CHECK_THROWS_WITH(twice.add_addends(name, std::make_shared<SomeAddends>()), Contains("the addends 'left' already"));
  twice.add_addends("leftmost", std::make_shared<SomeAddends>());
}

TEST_CASE("a rank that says of its addends what cannot be read is blamed") {
  const auto hostile = [](const std::string& text) {
    return [text](Group& world) {
      const native::Exchange exchange(world, {});
      exchange.require_ok({});
      (void)exchange.gather(text);
    };
  };
  const auto addends = std::make_shared<SomeAddends>();
  addends->values["a"] = {1, 2};
  Checkpoint checkpoint;
  checkpoint.add_addends("left", addends);
  const std::string text = GENERATE("", "[", "7", "[2]", R"({"left.a": -1})", R"({"left.a": 9223372036854775807})");
  CAPTURE(text);
  expect_blame(
      "the sizes of its addends", [&](Group& world) { (void)native::gather_addends(native::Exchange(world, {}), checkpoint); },
      hostile(text));
  native::Manifest manifest;
  manifest.files = {{8, ""}};
  for (const std::string name : {"left.a", "left.b"}) manifest.tensors.push_back({name, DType::f32, Shape{2}, {{0, {0, 2}, 0, 8}}, 1});
  expect_blame(
      "an answer about addends", [&](Group& world) { native::AddendLoad(native::Exchange(world, {}), checkpoint, manifest); },
      hostile("1"));
}

TEST_CASE("where memory is short for one rank's addends, all ranks say so") {
  const ScratchDirectory scratch;
  const auto addends_that_lack = [](SomeAddends::Call lacks) {
    const auto addends = std::make_shared<SomeAddends>();
    addends->values["x"] = {1, 2, 3};
    addends->lacks_memory = lacks;
    return addends;
  };
  const auto checkpoint_of = [&](Group& world, SomeAddends::Call lacks) {
    return Checkpoint().add_addends("left", addends_that_lack(world.rank() == 1 ? lacks : SomeAddends::Call::none));
  };
  expect_error<IoError>("rank 1: memory is short", [&](Group& world) {
    save_checkpoint(world, scratch.path(), checkpoint_of(world, SomeAddends::Call::own), {.step = 1});
  });
  run_ranks(2, [&](Group& world) { save_checkpoint(world, scratch.path(), checkpoint_of(world, SomeAddends::Call::none), {.step = 1}); });
  for (const auto lacks : {SomeAddends::Call::own, SomeAddends::Call::wants, SomeAddends::Call::take})
    expect_error<IoError>("rank 1: memory is short", [&](Group& world) {
      Checkpoint checkpoint = checkpoint_of(world, lacks);
      load_checkpoint(world, scratch.path(), checkpoint);
    });
}

TEST_CASE("a rank that tells of more elements than any rank can have is blamed, so that all ranks' bytes fit into an i64") {
  const ScratchDirectory scratch;
  const auto save = [&](Group& world, std::size_t told_count) {
    const auto addends = std::make_shared<SomeAddends>();
    addends->values["x"] = {1, 2, 3};
    addends->told_count = told_count;
    save_checkpoint(world, scratch.path(), Checkpoint().add_addends("left", addends), {.step = 1});
  };
  expect_blame(
      "the sizes of its addends that cannot be used: 'left.x' is 1152921504606846976; at most 1152921504606846975 fits",
      [&](Group& world) { save(world, 0); }, [&](Group& world) { save(world, std::size_t{1} << 60); });
}

TEST_CASE("addends go to those who want them, and empty ones are none") {
  const ScratchDirectory scratch;
  run_ranks(2, [&](Group& world) {
    const auto addends = std::make_shared<SomeAddends>();
    addends->values["x"] = {1, 2, 3, 4, static_cast<float>(world.rank())};
    addends->values["empty"] = {};
    save_checkpoint(world, scratch.path(), Checkpoint().add_addends("left", addends), {.step = 1});
  });
  for (const int loaders : {1, 2, 3, 4})
    run_ranks(loaders, [&](Group& world) {
      Checkpoint without;
      expect(load_checkpoint(world, scratch.path(), without) == 1u, "addends may be left");
      const auto addends = std::make_shared<SomeAddends>();
      addends->wants_all = world.rank() == 0 || world.rank() == 2;
      load_checkpoint(world, scratch.path(), without.add_addends("left", addends));
      const std::vector<float> own = addends->values["x"];
      if (loaders == 2)
        expect(own == (world.rank() == 0 ? std::vector<float>{1, 2, 3, 4, 0} : std::vector<float>{}), "its own, if it wants it");
      else if (!addends->wants_all)
        expect(own.empty(), "none for who wants none");
      else if (loaders == 1)
        expect(own == std::vector<float>{2, 4, 6, 8, 1}, "the sum");
      else
        expect(own == (world.rank() == 0 ? std::vector<float>{2, 4, 6, 0, 0} : std::vector<float>{0, 0, 0, 8, 1}), "a part of the sum");
    });
}

TEST_CASE("a trainer refuses a state that has the names of its own residuals") {
  run_elastic(1, [](Group& world) {
    std::vector<float> values(3);
    for (const std::string name : {"average_residuals", "shard_residuals"})
      for (const Checkpoint& state : {Checkpoint().add(name, Tree{{"0", values}}), Checkpoint().add(name + ".more", Tree{{"0", values}}),
                                      Checkpoint().add_addends(name, std::make_shared<SomeAddends>())}) {
        const auto error = failure_of<InvalidArgument>([&] { ElasticTrainer trainer(world, state); });
        expect(error.find("'" + name + "', the name by which") != std::string::npos, error);
      }
    ElasticTrainer trainer(world, Checkpoint().add("average_residuals_of_mine", Tree{{"0", values}}));
  });
}
