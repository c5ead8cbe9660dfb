// Tests of what checkpoints keep of each rank alone: addends, and residuals of error feedback, with which a training goes on to the bit.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <ringlet/ringlet.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/native/checkpoint_state.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

/// What one rank has of addends.
struct SomeAddends final : detail::Addends {
  std::map<std::string, std::vector<float>> values;
  bool has_taken = false;

  std::map<std::string, std::span<float>> own() override {
    std::map<std::string, std::span<float>> all;
    for (auto& [name, own] : values) all.emplace(name, own);
    return all;
  }
  void take(std::map<std::string, std::vector<float>> taken) override {
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

/// Requires that `body` throws this error, with `part` in its text, on both of two ranks.
template <class Expected>
void expect_error(const std::string& part, const std::function<void(Group&)>& body) {
  run_ranks(2, [&](Group& world) {
    try {
      body(world);
    } catch (const Expected& error) {
      expect(std::string(error.what()).find(part) != std::string::npos, error.what());
      world.barrier();
      return;
    }
    throw std::runtime_error("no error that says: " + part);
  });
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
  CHECK_THROWS_WITH(twice.add_addends("left", std::make_shared<SomeAddends>()), Contains("the addends 'left' already"));
}

TEST_CASE("an averager's residuals are saved, so that its means go on to the bit") {
  const AverageOptions options{.communication_type = Wire::int4({.feedback = true, .least_elements = 0})};
  constexpr int kSteps = 12;
  const auto average = [](GradientAverager& averager, int rank, int begin, int end) {
    std::vector<float> all;
    for (int step = begin; step < end; ++step) {
      std::vector<float> values(70), others(9);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) + static_cast<float>(7 * step + rank));
      for (std::size_t i = 0; i < others.size(); ++i) others[i] = std::cos(static_cast<float>(i * i) + static_cast<float>(step - rank));
      for (auto* gradient : {&values, &others}) averager.add(*gradient);
      averager.finish();
      for (auto* gradient : {&values, &others}) all.insert(all.end(), gradient->begin(), gradient->end());
    }
    return all;
  };
  const ScratchDirectory scratch;
  const bool is_weighted = GENERATE(false, true);
  std::vector<float> wanted;
  run_ranks(3, [&](Group& world) {
    GradientAverager averager(world, options), undisturbed(world, options);
    for (auto* each : {&averager, &undisturbed})
      if (is_weighted) each->set_weight(1.0 + world.rank());
    average(averager, world.rank(), 0, kSteps / 2);
    const std::vector<float> all = average(undisturbed, world.rank(), 0, kSteps);
    if (world.rank() == 0) wanted.assign(all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    Checkpoint checkpoint;
    averager.add_to(checkpoint);
    save_checkpoint(world, scratch.path(), checkpoint, {.step = 1});
  });
  run_ranks(3, [&](Group& world) {
    GradientAverager averager(world, options), forgetful(world, options), plain(world, {.communication_type = Wire::int4()});
    for (auto* each : {&averager, &forgetful})
      if (is_weighted) each->set_weight(1.0 + world.rank());
    Checkpoint checkpoint, without;
    averager.add_to(checkpoint);
    expect(load_checkpoint(world, scratch.path(), checkpoint) == 1u, "there is one");
    plain.add_to(without);
    expect(without.addends().empty(), "without feedback there are none");
    expect(average(averager, world.rank(), kSteps / 2, kSteps) == wanted, "the same bits");
    expect(average(forgetful, world.rank(), kSteps / 2, kSteps) != wanted, "others without the residuals");
  });
}

TEST_CASE("with another number of ranks nothing of the gradients is lost: means and what is left add up to them") {
  const BlockFormat format = GENERATE(BlockFormat::int8, BlockFormat::int4);
  const FsdpOptions options{.reduce_dtype = Wire::in_blocks(format, {.feedback = true, .least_elements = 0})};
  constexpr int kSteps = 10;
  constexpr std::size_t kCount = 150;
  const auto gradient = [](int step, std::size_t i) { return std::sin(static_cast<float>(i * i + static_cast<std::size_t>(step))); };
  // The means of so many steps are added to `sums`; all ranks have the same gradients.
  const auto train = [&](FsdpUpdater& updater, int begin, int end, std::vector<double>& sums) {
    for (int step = begin; step < end; ++step) {
      std::vector<float> values(kCount), means(kCount);
      for (std::size_t i = 0; i < kCount; ++i) values[i] = gradient(step, i);
      const Tree gradients{{"w", {values.data(), DType::f32, Shape{50, 3}}}}, parameters{{"w", {means.data(), DType::f32, Shape{50, 3}}}};
      updater.apply_gradients(gradients, parameters, [](const Tree& g, const Tree& p) { copy(g[0].values, p[0].values); });
      for (std::size_t i = 0; i < kCount; ++i) sums[i] += static_cast<double>(means[i]);
    }
  };
  const auto left = [](Group& world, Checkpoint& checkpoint) {
    std::vector<float> all(kCount);
    for (const auto& [name, own] : checkpoint.addends().at(0).second->own()) std::copy(own.begin(), own.end(), all.begin());
    world.all_sum(all);
    return all;
  };
  const ScratchDirectory scratch;
  std::vector<double> first(kCount);
  run_ranks(3, [&](Group& world) {
    FsdpUpdater updater(world, options);
    std::vector<double> sums(kCount);
    train(updater, 0, kSteps / 2, sums);
    Checkpoint checkpoint;
    updater.add_to(checkpoint);
    save_checkpoint(world, scratch.path(), checkpoint, {.step = 1});
    const std::vector<float> all = left(world, checkpoint);
    expect(*std::max_element(all.begin(), all.end()) > 1e-3F, "something is left");
    if (world.rank() == 0) first = sums;
  });
  for (const int loaders : {1, 2, 3, 5}) {
    CAPTURE(loaders);
    run_ranks(loaders, [&](Group& world) {
      FsdpUpdater updater(world, options);
      Checkpoint checkpoint;
      updater.add_to(checkpoint);
      expect(load_checkpoint(world, scratch.path(), checkpoint) == 1u, "there is one");
      std::vector<double> sums = first;
      train(updater, kSteps / 2, kSteps, sums);
      const std::vector<float> all = left(world, checkpoint);
      for (std::size_t i = 0; i < kCount; ++i) {
        double wanted = 0;
        for (int step = 0; step < kSteps; ++step) wanted += static_cast<double>(gradient(step, i));
        expect(std::abs(sums[i] + static_cast<double>(all[i]) - wanted) < 1e-5,
               [&] { return std::to_string(sums[i]) + " and " + std::to_string(all[i]); });
      }
    });
  }
}

TEST_CASE("a training that was stopped has the bits of one that was not, with what rounding has left of its gradients") {
  const auto trained = [](const std::vector<std::uint64_t>& stops) {
    const ScratchDirectory scratch;
    std::vector<float> parameters(80);
    for (const std::uint64_t steps : stops)
      run_elastic(3, [&](Group& world) {
        std::vector<float> own(80), gradient(80);
        ElasticTrainerOptions options{.checkpoint = scratch.path()};
        options.average.communication_type = Wire::int4({.feedback = true, .least_elements = 0});
        ElasticTrainer trainer(std::exchange(world, Group()), Checkpoint().add("p", Tree{{"w", own}}), options);
        trainer.run({.steps = steps, .batch = 7}, [&](Step& step) {
          for (std::size_t i = 0; i < gradient.size(); ++i)
            gradient[i] = std::sin(static_cast<float>(i * i + step.first() + 7 * step.number()) + own[i]);
          step.average(Tree{{"w", gradient}});
          step.commit([&] {
            for (std::size_t i = 0; i < own.size(); ++i) own[i] -= gradient[i];
          });
        });
        if (trainer.world().rank() == 0) parameters = own;
      });
    return parameters;
  };
  const auto undisturbed = trained({12});
  CHECK(undisturbed == trained({5, 12}));
  CHECK(undisturbed == trained({1, 2, 11, 12}));
}

TEST_CASE("an outer training that was stopped has the bits of one that was not, with what rounding has left of its differences") {
  // Fragments are averaged out of turn at the end of a run, so both have the same runs.
  const std::vector<std::uint64_t> ends{8, 12, 24};
  const auto trained = [&](const std::vector<std::vector<std::uint64_t>>& trainers) {
    const ScratchDirectory scratch;
    std::vector<float> shared;
    for (const auto& runs : trainers)
      run_elastic(2, [&](Group& world) {
        std::vector<float> weight(70), bias(50);
        OuterTrainerOptions options{.inner_steps = 4, .fragments = 2, .wire = Wire::int4({.feedback = true, .least_elements = 0})};
        options.elastic.checkpoint = scratch.path();
        OuterTrainer trainer(std::exchange(world, Group()), Tree{{"weight", weight}, {"bias", bias}}, options);
        for (const std::uint64_t end : runs)
          trainer.run(end, [&](const InnerStep& step) {
            for (auto* values : {&weight, &bias})
              for (std::size_t i = 0; i < values->size(); ++i)
                (*values)[i] -= 0.1F * std::sin(static_cast<float>(i * i + step.number * 3 + static_cast<std::uint64_t>(step.rank)));
            return 1.0;
          });
        if (trainer.world().rank() == 0) shared = weight;
      });
    return shared;
  };
  CHECK(trained({ends}) == trained({{ends[0]}, {ends[1]}, {ends[2]}}));
}
