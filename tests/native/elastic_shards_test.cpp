// Tests of what elastic shards do in one world, in a loop of the program's own, and with arguments that do not fit.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <ringlet/ringlet.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"
#include "tests/native/sharded_model.hpp"

using namespace ringlet;
using test::expect;
using test::failure_of;
using test::run_elastic;
using test::ShardedModel;

TEST_CASE("a batch that does not divide evenly is averaged over its samples") {
  run_elastic(3, [](Group& world) {
    std::vector<float> parameter(6), gradient(6);
    const Tree parameters{{"p", parameter}}, gradients{{"p", gradient}};
    ElasticFsdp fsdp(world, parameters, [] { return std::make_unique<SGD>(1.0); });
    ElasticTrainer trainer(std::exchange(world, Group()), Checkpoint(), fsdp);
    for (const std::uint64_t batch : {7, 2}) {
      const std::uint64_t begin = trainer.step();
      std::fill(parameter.begin(), parameter.end(), 0.0F);
      trainer.run({.steps = begin + 1, .batch = batch}, [&](Step& step) {
        double sum = 0;
        for (std::uint64_t i = step.first(); i < step.first() + step.count(); ++i) sum += static_cast<double>(i);
        // Without samples that is not a number, which has no weight.
        std::fill(gradient.begin(), gradient.end(), static_cast<float>(sum / static_cast<double>(step.count())));
        fsdp.average(gradients);
        step.commit([&] { fsdp.update(); });
      });
      for (const float value : parameter)
        expect(std::abs(value + static_cast<float>(batch - 1) / 2) < 1e-5F, [&] { return std::to_string(value); });
    }
  });
}

TEST_CASE("a loop of the program's own goes on with all rows, and weighs the ranks as it likes") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  run_elastic(3, [&](Group& world) {
    constexpr std::uint64_t kSamples = 7, kSteps = 6;
    const int origin = world.rank();
    const auto make = [] { return std::make_unique<SGD>(1.0); };
    std::vector<float> parameter(6), gradient(6);
    const Tree parameters{{"p", parameter}}, gradients{{"p", gradient}};
    ElasticFsdp fsdp(world, parameters, make);
    ElasticFullyShard full(world, make);
    full.add("m", parameters);
    ElasticShards& shards = shards_parameters ? static_cast<ElasticShards&>(full) : fsdp;
    const auto average = [&](double share) {
      if (!shards_parameters) return (void)fsdp.average(gradients, share);
      full.set_share(share);
      full.reduce_gradients(0, gradients);
      full.finish();
    };
    bool has_entered = false;
    while (shards.step() < kSteps) {
      try {
        if (!std::exchange(has_entered, true)) expect(shards.enter(world).empty(), "no rows are lost");
        const auto rank = static_cast<std::uint64_t>(world.rank()), ranks = static_cast<std::uint64_t>(world.size());
        const std::uint64_t first = kSamples * rank / ranks, end = kSamples * (rank + 1) / ranks;
        double sum = 0;
        for (std::uint64_t i = first; i < end; ++i) sum += static_cast<double>(i);
        std::fill(gradient.begin(), gradient.end(), static_cast<float>(sum / static_cast<double>(end - first)));
        average(static_cast<double>((end - first) * ranks) / static_cast<double>(kSamples));
        if (origin == 1 && shards.step() == 3) return;
        if (!world.agree(true)) world.barrier();
        shards.update();
        shards.gather();
      } catch (const PeerLost&) {
        world = world.reform().world;
        has_entered = false;
      }
    }
    if (shards_parameters) {
      const FullyShard::Unsharded unsharded = full.forward(0);
      copy(unsharded.parameters().at("p"), parameters.at("p"));
    }
    for (const float value : parameter) expect(std::abs(value + 3 * kSteps) < 1e-4F, [&] { return std::to_string(value); });
  });
}

TEST_CASE("what elastic shards do not take is refused") {
  Group world;
  ShardedModel model;
  const auto error_of = [&](const ElasticFsdpOptions& options, MakeOptimizer make = test::make_adam) {
    return failure_of<InvalidArgument>([&] { ElasticFsdp(world, model.parameters, std::move(make), options); });
  };
  CHECK(error_of({.copies = 3}) == "copies is 3; 1 or 2 are possible");
  CHECK(error_of({.copies = 0}) == "copies is 0; 1 or 2 are possible");
  CHECK(error_of({.shard_weight = -1}).find("shard_weight is -1") == 0);
  CHECK(error_of({.rebuild_size = 0}) == "rebuild_size is 0; it must be positive");
  CHECK(error_of({.max_norm = -1.0}).find("max_norm") != std::string::npos);
  CHECK(error_of({.reduce_dtype = DType::i32}).find("reduce_dtype") == 0);
  CHECK(error_of({}, {}) == "the function that makes the optimizer is empty");
  ElasticFsdp fsdp(world, model.parameters, test::make_adam, {.copies = 1});
  Checkpoint checkpoint;
  CHECK(fsdp.bytes_to_rebuild() == 0);
  CHECK(failure_of<InvalidArgument>([&] { fsdp.add_to(checkpoint); }) == "add_to() before enter()");
  CHECK(failure_of<InvalidArgument>([&] { fsdp.average(model.gradients); }) == "average() before enter()");
  CHECK(failure_of<InvalidArgument>([&] { fsdp.gather(); }) == "gather() before enter()");
  CHECK(failure_of<InvalidArgument>([&] { fsdp.loaded(1); }) == "loaded() before enter()");
  std::string nested;
  ElasticFsdp* whole = nullptr;
  ElasticFsdp recursive(world, model.parameters, [&] {
    if (whole != nullptr) nested = failure_of<InvalidArgument>([&] { (void)whole->enter(world); });
    return test::make_adam();
  });
  whole = &recursive;
  CHECK(recursive.enter(world).empty());
  CHECK(nested == "enter() of elastic shards within their enter()");
  CHECK(fsdp.enter(world).empty());
  CHECK(failure_of<InvalidArgument>([&] { fsdp.update(); }) == "update() of elastic shards before their gradients are averaged");
  ElasticFullyShard full(world, test::make_adam);
  full.add("m", model.parameters);
  CHECK(failure_of<InvalidArgument>([&] { (void)full.forward(0); }) == "a call of ElasticFullyShard before enter()");
  CHECK(failure_of<InvalidArgument>([&] { full.loaded(1); }) == "loaded() before enter()");
  CHECK(full.enter(world).empty());
  CHECK(failure_of<InvalidArgument>([&] { (void)full.add("n", model.parameters); }) == "the module 'n' is added after enter()");
  CHECK(failure_of<InvalidArgument>([&] { (void)full.forward(1); }).find("there is no module 1") == 0);
  CHECK(failure_of<InvalidArgument>([&] { full.finish(); }) == "finish() before the gradients of the module 'm' were given");
  CHECK(failure_of<InvalidArgument>([&] { ElasticFullyShard(world, test::make_adam, {.prefetch = -1}); }).find("prefetch is -1") == 0);
  test::run_ranks(2, [](Group& group) {
    ShardedModel its;
    ElasticFsdp differs(group, its.parameters, test::make_adam, {.copies = 1 + group.rank()});
    expect(failure_of<MismatchError>([&] { (void)differs.enter(group); }).find("rank 0 has copies 1, rank 1 has copies 2") !=
               std::string::npos,
           "the copies");
    ElasticFsdp hasty(group, its.parameters, test::make_adam, {.rebuild_size = 1 + group.rank()});
    expect(failure_of<MismatchError>([&] { (void)hasty.enter(group); }).find("rebuild_size") != std::string::npos, "the bytes");
    ElasticFsdp weightless(group, its.parameters, test::make_adam, {.shard_weight = 0});
    expect(failure_of<InvalidArgument>([&] { (void)weightless.enter(group); }).find("shard_weight of all ranks is 0") != std::string::npos,
           "the weights");
  });
}
