#include <catch2/catch.hpp>
#include <memory>

#include "tests/core/seeds.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"
#include "tests/native/regression.hpp"

using namespace ringlet;
using test::expect;
using test::failure_of;
using test::Regression;

namespace {

std::unique_ptr<Optimizer> make_optimizer(const std::string& name) {
  if (name == "SGD") return std::make_unique<SGD>(0.05, SGDOptions{.momentum = 0.9});
  if (name == "Adam") return std::make_unique<Adam>(0.01);
  return std::make_unique<AdamW>(0.01, AdamWOptions{.bias_correction = true});
}

/// Takes one step of plain data parallelism.
void data_parallel_step(Group& world, Regression& model, Optimizer& optimizer, std::optional<double> max_norm) {
  average_gradients(world, model.gradients());
  if (max_norm) clip_grad_norm(model.gradients(), *max_norm);
  optimizer.apply_gradients(model.gradients(), model.parameters());
}

void expect_equal_on_all_ranks(Group& world, const Regression& model) {
  std::vector<float> lowest = model.flat(), highest = lowest;
  world.all_min(lowest);
  world.all_max(highest);
  expect(lowest == highest && lowest == model.flat(), "the parameters' bits are equal on all ranks");
}

/// An optimizer type of the user's own.
struct PlainSgd {
  std::vector<std::string> seen;
  void apply_gradients(const Tree& gradients, const Tree& parameters) {
    for (const auto& [name, gradient] : gradients) {
      seen.push_back(name + " " + to_string(gradient.shape()));
      auto* p = reinterpret_cast<float*>(parameters.at(name).data());
      const auto* g = reinterpret_cast<const float*>(gradient.data());
      for (std::size_t i = 0; i < gradient.count(); ++i) p[i] -= g[i];
    }
  }
};

}  // namespace

TEST_CASE("FSDP follows plain data parallelism over 100 steps") {
  const int ranks = GENERATE(2, 3, 4, 8);
  const std::string name = GENERATE("SGD", "Adam", "AdamW");
  const bool even = GENERATE(true, false);
  const bool clipped = GENERATE(true, false);
  const bool hybrid = GENERATE(false, true);
  if (hybrid && ranks % 2 != 0) return;
  CAPTURE(ranks, name, even, clipped, hybrid);
  test::run_ranks(ranks, [&](Group& world) {
    Regression sharded(even ? test::kEvenShapes : test::kUnevenShapes), plain(even ? test::kEvenShapes : test::kUnevenShapes);
    const auto sharded_optimizer = make_optimizer(name), plain_optimizer = make_optimizer(name);
    const std::optional<double> max_norm = clipped ? std::optional(0.5) : std::nullopt;
    Group fsdp_group = world;
    FsdpOptions options{.communication_size = 200, .max_norm = max_norm};
    if (hybrid) {
      fsdp_group = *world.split(world.rank() % 2);
      options.dp_group = world.split(world.rank() / 2);
    }
    FsdpUpdater updater(fsdp_group, options);
    for (int step = 0; step < static_cast<int>(test::share_of(100)); ++step) {
      sharded.compute_gradients(world.rank(), step);
      plain.compute_gradients(world.rank(), step);
      const auto norm = updater.apply_gradients(sharded.gradients(), sharded.parameters(),
                                                [&](const Tree& g, const Tree& p) { sharded_optimizer->apply_gradients(g, p); });
      expect(norm.has_value() == clipped, "the norm is returned where it is clipped");
      data_parallel_step(world, plain, *plain_optimizer, max_norm);
    }
    expect(sharded.distance(plain) < 2e-5f, "distance " + std::to_string(sharded.distance(plain)));
    expect_equal_on_all_ranks(world, sharded);
    // Each rank keeps the state of its own rows only, so all ranks of an FSDP group together have one copy.
    double bytes = static_cast<double>(sharded_optimizer->state_bytes());
    fsdp_group.all_sum(std::span(&bytes, 1));
    expect(bytes == static_cast<double>(plain_optimizer->state_bytes()), "the shards' states add up to one");
  });
}

TEST_CASE("the optimizer's memory is close to 1/N on every rank") {
  const int ranks = GENERATE(2, 4, 8);
  test::run_ranks(ranks, [&](Group& world) {
    Regression model({Shape{1000, 20}, Shape{1000}, Shape{333, 7}});
    Adam optimizer(0.01);
    model.compute_gradients(world.rank(), 0);
    fsdp_apply_gradients(world, model.gradients(), model.parameters(), optimizer);
    const double share = static_cast<double>(optimizer.state_bytes()) / (2.0 * static_cast<double>(model.parameters().bytes()));
    expect(std::abs(share * ranks - 1.0) < 0.02, "share " + std::to_string(share));
  });
}

TEST_CASE("the norm is that of the averaged gradients before clipping, as MLX returns it") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> gradient(4, world.rank() == 0 ? 4.f : 2.f), parameter(4, 0.f);
    PlainSgd optimizer;
    const auto norm = fsdp_apply_gradients(world, Tree{{"w", gradient}}, Tree{{"w", parameter}}, optimizer, {.max_norm = 1.5});
    expect(norm && std::abs(*norm - 6.0) < 1e-6, "the norm of (3, 3, 3, 3)");
    for (const float value : parameter) expect(std::abs(value + 0.75f) < 1e-5f, "scaled by 1.5 / 6");
    expect(!fsdp_apply_gradients(world, Tree{{"w", gradient}}, Tree{{"w", parameter}}, optimizer), "no norm without max_norm");
  });
}

TEST_CASE("a group of one clips and applies without shards") {
  test::run_ranks(1, [](Group& world) {
    std::vector<float> gradient(4, 3.f), parameter(4, 0.f);
    PlainSgd optimizer;
    const auto norm = fsdp_apply_gradients(world, Tree{{"w", gradient}}, Tree{{"w", parameter}}, optimizer, {.max_norm = 3.0});
    expect(norm && std::abs(*norm - 6.0) < 1e-6, "norm");
    expect(std::abs(parameter[0] + 1.5f) < 1e-5f, "scaled by half");
    expect(optimizer.seen == std::vector<std::string>{"w (4,)"}, "the trees as they are");
  });
}

TEST_CASE("an optimizer of the user's own sees this rank's rows under their names") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> weight(15), bias(3), scale(1), gradient(19, 1.f);
    const Tree parameters{{"w", {weight.data(), DType::f32, Shape{5, 3}}}, {"b", bias}, {"s", {scale.data(), DType::f32, Shape{}}}};
    const Tree gradients{{"w", {gradient.data(), DType::f32, Shape{5, 3}}},
                         {"b", {gradient.data() + 15, DType::f32, Shape{3}}},
                         {"s", {gradient.data() + 18, DType::f32, Shape{}}}};
    PlainSgd optimizer;
    fsdp_apply_gradients(world, gradients, parameters, optimizer);
    const std::vector<std::string> first{"w (3, 3)", "b (2,)", "s (1,)"}, second{"w (2, 3)", "b (1,)", "s (0,)"};
    expect(optimizer.seen == (world.rank() == 0 ? first : second), "shapes");
    expect(weight == std::vector<float>(15, -1.f) && bias == std::vector<float>(3, -1.f) && scale[0] == -1.f, "all rows everywhere");
  });
}

TEST_CASE("shares of rows follow the weights, and the result is the same") {
  test::run_ranks(3, [](Group& world) {
    Regression weighted(test::kUnevenShapes), even(test::kUnevenShapes);
    AdamW weighted_optimizer(0.01), even_optimizer(0.01);
    FsdpUpdater updater(world, {.shard_weights = {1.0, 0.0, 3.0}});
    for (int step = 0; step < 20; ++step) {
      weighted.compute_gradients(world.rank(), step);
      even.compute_gradients(world.rank(), step);
      updater.apply_gradients(weighted.gradients(), weighted.parameters(),
                              [&](const Tree& g, const Tree& p) { weighted_optimizer.apply_gradients(g, p); });
      fsdp_apply_gradients(world, even.gradients(), even.parameters(), even_optimizer);
    }
    expect(weighted.distance(even) < 1e-6f, "distance " + std::to_string(weighted.distance(even)));
    expect((weighted_optimizer.state_bytes() == 0) == (world.rank() == 1), "rank 1 has a weight of 0 and holds nothing");
    expect(updater.layout()->count(1) == 0, "layout");
  });
}

TEST_CASE("dtypes are mixed without being promoted, and gradients may be reduced in another") {
  const std::optional<DType> reduce = GENERATE(std::optional<DType>(), std::optional(DType::f32), std::optional(DType::bf16));
  test::run_ranks(2, [&](Group& world) {
    std::vector<float> wide(6, 1.f), wide_gradient(6, world.rank() == 0 ? 1.f : 3.f);
    std::vector<BFloat16> narrow(5, {0x3f80}), narrow_gradient(5, {0x3f80});  // ones
    std::vector<double> exact(3, 1.0), exact_gradient(3, 1.0);
    const Tree parameters{{"wide", wide}, {"narrow", narrow}, {"exact", exact}};
    SGD optimizer(0.5);
    fsdp_apply_gradients(world, Tree{{"wide", wide_gradient}, {"narrow", narrow_gradient}, {"exact", exact_gradient}}, parameters,
                         optimizer, {.reduce_dtype = reduce});
    expect(wide == std::vector<float>(6, 0.f), "f32");
    expect(narrow == std::vector<BFloat16>(5, {0x3f00}), "bf16 stays bf16: a half");
    expect(exact == std::vector<double>(3, 0.5), "f64");
  });
}

TEST_CASE("FSDP refuses what does not fit and names it") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> six(6), five(5);
    std::vector<std::int32_t> whole(6);
    PlainSgd optimizer;
    const auto refused = [&](const Tree& gradients, const Tree& parameters, const FsdpOptions& options, const std::string& wanted) {
      const std::string text = failure_of<InvalidArgument>([&] { fsdp_apply_gradients(world, gradients, parameters, optimizer, options); });
      expect(text.find(wanted) != std::string::npos, text);
    };
    refused(Tree{{"w", six}}, Tree{{"w", five}}, {}, "'w' f32 (6,) in the gradients but 'w' f32 (5,) in the parameters");
    refused(Tree{{"w", six}}, Tree{{"w", six}, {"v", five}}, {}, "'v' f32 (5,), is only in the parameters");
    refused(Tree{{"w", whole}}, Tree{{"w", whole}}, {}, "'w' is i32 (6,)");
    refused(Tree{{"w", six}}, Tree{{"w", six}}, {.max_norm = -1.0}, "max_norm is -1");
    refused(Tree{{"w", six}}, Tree{{"w", six}}, {.max_norm = std::nan("")}, "max_norm is nan");
    refused(Tree{{"w", six}}, Tree{{"w", six}}, {.reduce_dtype = DType::i32}, "reduce_dtype is i32");
    refused(Tree{{"w", six}}, Tree{{"w", six}}, {.shard_weights = {1.0}}, "1 shard weights for 2 ranks");
    const std::string text = failure_of<MismatchError>([&] {
      const Tree tree{{world.rank() == 0 ? "a" : "b", six}};
      fsdp_apply_gradients(world, tree, tree, optimizer);
    });
    expect(text.find("'a' f32 (6,) in rank 0's but 'b' f32 (6,) in rank 1's") != std::string::npos, text);
  });
}

TEST_CASE("the norm of f16 shards does not overflow") {
  test::run_ranks(2, [](Group& world) {
    std::vector<Float16> shard(4, {0x7bff});  // 65504
    const double norm = clip_grad_norm_sharded(world, Tree{{"w", shard}}, 1.0);
    expect(std::abs(norm - 65504 * std::sqrt(8.0)) < 1e-3, "norm");
    expect(shard[0].bits != 0x7bff, "scaled");
  });
}
