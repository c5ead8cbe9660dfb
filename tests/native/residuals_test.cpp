// Tests of what checkpoints keep of error feedback: residuals, with which a training goes on to the bit.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <functional>
#include <ringlet/ringlet.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/native/checkpoint_state.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using namespace ringlet::test;

TEST_CASE("residuals of sums between replicas come back to their shard, and only there") {
  // Three rows are two for the first shard and one for the second.
  const Shape shape{3, 40};
  constexpr int kSteps = 8;
  const FsdpOptions wanted{.reduce_dtype = Wire::int4({.feedback = true, .least_elements = 0})};
  const auto train = [&](FsdpUpdater& updater, int rank, int begin, int end) {
    std::vector<float> all;
    for (int step = begin; step < end; ++step) {
      std::vector<float> values(shape.count()), means(shape.count());
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = std::sin(static_cast<float>(i * i + static_cast<std::size_t>(7 * step + rank)));
      const Tree gradients{{"w", {values.data(), DType::f32, shape}}}, parameters{{"w", {means.data(), DType::f32, shape}}};
      updater.apply_gradients(gradients, parameters, [](const Tree& g, const Tree& p) { copy(g[0].values, p[0].values); });
      all.insert(all.end(), means.begin(), means.end());
    }
    return all;
  };
  const ScratchDirectory scratch;
  const auto in_replica = [&](Group& world, const std::function<void(Group&, FsdpUpdater&, const std::filesystem::path&)>& body) {
    const int replica = world.rank() % 2;
    Group shards = *world.split(replica);
    FsdpOptions options = wanted;
    options.dp_group = world.split(world.rank() / 2);
    FsdpUpdater updater(shards, options);
    body(shards, updater, scratch.of(replica));
  };
  std::vector<float> undisturbed;
  run_ranks(4, [&](Group& world) {
    in_replica(world, [&](Group& shards, FsdpUpdater& updater, const std::filesystem::path& directory) {
      const std::vector<float> before = train(updater, world.rank(), 0, kSteps / 2);
      Checkpoint checkpoint;
      updater.add_to(checkpoint);
      save_checkpoint(shards, directory, checkpoint, {.step = 1});
      const std::vector<float> after = train(updater, world.rank(), kSteps / 2, kSteps);
      if (world.rank() == 0) undisturbed = after;
    });
  });
  run_ranks(4, [&](Group& world) {
    in_replica(world, [&](Group& shards, FsdpUpdater& updater, const std::filesystem::path& directory) {
      Checkpoint checkpoint;
      updater.add_to(checkpoint);
      expect(load_checkpoint(shards, directory, checkpoint) == 1u, "there is one");
      expect(train(updater, world.rank(), kSteps / 2, kSteps) == undisturbed, "the same bits");
    });
  });
  run_ranks(3, [&](Group& world) {
    FsdpUpdater updater(world, wanted);
    Checkpoint checkpoint;
    updater.add_to(checkpoint);
    expect(load_checkpoint(world, scratch.of(0), checkpoint) == 1u, "there is one");
    const auto own = checkpoint.addends().at(0).second->own();
    expect(own.size() == 1 && own.begin()->first == "gradients.0", "no sums of other shards");
  });
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
