#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <ringlet/ringlet.hpp>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

// Checks MLX's nn.average_gradients, nn.fsdp_apply_gradients, nn.fully_shard and sharded layers. The names of tests say where Ringlet
// differs on purpose.

using namespace ringlet;
using test::expect;
using test::failure_of;

namespace {

std::size_t collectives_for(Group& world, const AverageOptions& options) {
  std::vector<std::vector<float>> ten(10, std::vector<float>(10, static_cast<float>(world.rank())));
  GradientAverager averager(world, options);
  for (auto& tensor : ten) averager.add(tensor);
  averager.finish();
  for (const auto& tensor : ten)
    for (const float value : tensor) expect(value == static_cast<float>(world.size() - 1) / 2, "mean");
  return averager.collectives();
}

Tensor filled(const Shape& shape, float value) {
  Tensor tensor(DType::f32, shape);
  for (float& element : tensor.values<float>()) element = value;
  return tensor;
}

bool is(ConstTensorView tensor, float value) {
  const auto* values = reinterpret_cast<const float*>(tensor.data());
  return std::all_of(values, values + tensor.count(), [&](float v) { return std::abs(v - value) < 1e-5f; });
}

/// An optimizer that records what it is given.
struct Recorder {
  std::vector<std::string> seen;
  const void* parameter = nullptr;
  void apply_gradients(const Tree& gradients, const Tree& parameters) {
    for (const auto& [name, gradient] : gradients) seen.push_back(name + " " + describe(gradient));
    parameter = parameters[0].values.data();
    for (const auto& [name, values] : parameters) {
      auto* p = reinterpret_cast<float*>(values.data());
      const auto* g = reinterpret_cast<const float*>(gradients.at(name).data());
      for (std::size_t i = 0; i < values.count(); ++i) p[i] -= g[i];
    }
  }
};

}  // namespace

TEST_CASE("average_gradients: ten tensors of ten values take 1, 2 or 10 collectives") {
  test::run_ranks(2, [](Group& world) {
    expect(collectives_for(world, {}) == 1, "default");
    expect(collectives_for(world, {.all_reduce_size = 200}) == 2, "200 bytes");
    expect(collectives_for(world, {.all_reduce_size = 0}) == 10, "0");
    expect(collectives_for(world, {.all_reduce_size = -5}) == 10, "negative");
  });
}

TEST_CASE("average_gradients: a bucket is full by the bytes of the communication type") {
  test::run_ranks(2, [](Group& world) {
    expect(collectives_for(world, {.all_reduce_size = 200, .communication_type = DType::bf16}) == 1, "200 bytes of bf16");
    expect(collectives_for(world, {.all_reduce_size = 100, .communication_type = DType::f16}) == 2, "100 bytes of f16");
    expect(collectives_for(world, {.all_reduce_size = 0, .communication_type = DType::f16}) == 10, "0");
  });
}

TEST_CASE("average_gradients: with a communication type too, only the group's ranks count") {
  test::run_ranks(4, [](Group& world) {
    Group half = world.split(world.rank() / 2).value();
    Tensor gradient = filled(Shape{100}, static_cast<float>(world.rank()));
    average_gradients(half, Tree{{"g", gradient}}, {.communication_type = DType::bf16});
    expect(is(gradient, world.rank() < 2 ? 0.5f : 2.5f), "the mean of a half");
  });
}

TEST_CASE("average_gradients: a group of one changes nothing, not even by the communication type") {
  Group alone;
  std::vector<float> values{1.f / 3, 1e-30f};
  const auto before = values;
  average_gradients(alone, Tree{{"g", values}}, {.communication_type = DType::f16});
  CHECK(values == before);
}

TEST_CASE("average_gradients: ranks with batches of different size count alike, or by their weight, which MLX has not") {
  test::run_ranks(3, [](Group& world) {
    const double samples[] = {1, 2, 5};
    Tensor plain = filled(Shape{7}, static_cast<float>(world.rank())), weighted = filled(Shape{7}, static_cast<float>(world.rank()));
    average_gradients(world, Tree{{"g", plain}});
    average_gradients(world, Tree{{"g", weighted}}, {.weight = samples[world.rank()]});
    expect(is(plain, 1.f), "plain");
    expect(is(weighted, (2.f + 2 * 5.f) / 8), "weighted");
  });
}

TEST_CASE("average_gradients: mixed dtypes keep theirs and share buckets by dtype, in MLX each tensor goes by itself") {
  test::run_ranks(2, [](Group& world) {
    std::vector<std::vector<float>> narrow(5, std::vector<float>(3, static_cast<float>(world.rank())));
    std::vector<std::vector<double>> wide(5, std::vector<double>(3, world.rank()));
    GradientAverager averager(world);
    for (std::size_t i = 0; i < 5; ++i) {
      averager.add(narrow[i]);
      averager.add(wide[i]);
    }
    averager.finish();
    expect(averager.collectives() == 2, "one each");
    expect(narrow[4][2] == 0.5f && wide[4][2] == 0.5, "means");
  });
}

TEST_CASE("average_gradients: integers are refused, MLX makes them f32") {
  test::run_ranks(2, [](Group& world) {
    std::vector<std::int32_t> values(3);
    expect(failure_of<InvalidArgument>([&] { average_gradients(world, Tree{{"g", values}}); }).find("i32") != std::string::npos, "i32");
  });
}

TEST_CASE("fsdp_apply_gradients: gradients are averaged, the norm is that before clipping, the scale max_norm / (norm + 1e-6)") {
  test::run_ranks(2, [](Group& world) {
    Tensor gradient = filled(Shape{4}, world.rank() == 0 ? 4.f : 2.f), parameter = filled(Shape{4}, 0.f);
    const Tree gradients{{"w", gradient}}, parameters{{"w", parameter}};
    Recorder optimizer;
    expect(!fsdp_apply_gradients(world, gradients, parameters, optimizer), "no norm without max_norm");
    expect(is(parameter, -3.f), "the mean was applied");
    const auto norm = fsdp_apply_gradients(world, gradients, parameters, optimizer, {.max_norm = 1.5});
    expect(norm && std::abs(*norm - 6.0) < 1e-6, "norm");
    expect(is(parameter, -3.75f), "scaled by 1.5 / 6");
    expect(std::abs(*fsdp_apply_gradients(world, gradients, parameters, optimizer, {.max_norm = 100.0}) - 6.0) < 1e-6,
           "the norm unclipped");
    expect(is(parameter, -6.75f), "never scaled up");
  });
}

TEST_CASE("fsdp_apply_gradients: one rank clips if asked and applies the trees as they are") {
  Group alone;
  Tensor gradient = filled(Shape{4}, 3.f), parameter = filled(Shape{4}, 0.f);
  Recorder optimizer;
  CHECK_FALSE(fsdp_apply_gradients(alone, Tree{{"w", gradient}}, Tree{{"w", parameter}}, optimizer));
  CHECK(is(parameter, -3.f));
  CHECK(fsdp_apply_gradients(alone, Tree{{"w", gradient}}, Tree{{"w", parameter}}, optimizer, {.max_norm = 3.0}).value() == Approx(6.0));
  CHECK(is(parameter, -4.5f));
  CHECK(optimizer.seen == std::vector<std::string>(2, "w f32 (4,)"));
  CHECK(optimizer.parameter == parameter.view().data());
}

TEST_CASE("fsdp_apply_gradients: one rank of a larger world clips by its own norm, in MLX by the world's") {
  test::run_ranks(2, [](Group& world) {
    Group own = world.split(world.rank()).value();
    Tensor gradient = filled(Shape{4}, world.rank() == 0 ? 3.f : 30.f), parameter = filled(Shape{4}, 0.f);
    Recorder optimizer;
    const auto norm = fsdp_apply_gradients(own, Tree{{"w", gradient}}, Tree{{"w", parameter}}, optimizer, {.max_norm = 3.0});
    expect(norm && std::abs(*norm - (world.rank() == 0 ? 6.0 : 60.0)) < 1e-5, "norm");
  });
}

TEST_CASE("fsdp_apply_gradients: with dp_group the mean is over all ranks, the norm that of the mean") {
  test::run_ranks(4, [](Group& world) {
    Group shards = world.split(world.rank() / 2).value();
    Tensor gradient = filled(Shape{2, 2}, static_cast<float>(world.rank()) * 2), parameter = filled(Shape{2, 2}, 0.f);
    Recorder optimizer;
    const FsdpOptions options{.dp_group = world.split(world.rank() % 2), .max_norm = 100.0};
    const auto norm = fsdp_apply_gradients(shards, Tree{{"w", gradient}}, Tree{{"w", parameter}}, optimizer, options);
    expect(norm && std::abs(*norm - 6.0) < 1e-6, "the norm of four times 3");
    expect(is(parameter, -3.f), "the mean of 0, 2, 4, 6");
    expect(optimizer.seen == std::vector<std::string>{"w f32 (1, 2)"}, "shards are over the FSDP group alone");
  });
}

TEST_CASE("fsdp_apply_gradients: the optimizer sees rows under their names, in MLX numbered flat buckets") {
  test::run_ranks(2, [](Group& world) {
    Tensor weight(DType::f32, Shape{4, 3}), bias(DType::f32, Shape{2}), gradient = filled(Shape{4, 3}, 1.f), one = filled(Shape{2}, 1.f);
    Recorder optimizer;
    fsdp_apply_gradients(world, Tree{{"w", gradient}, {"b", one}}, Tree{{"w", weight}, {"b", bias}}, optimizer);
    expect(optimizer.seen == std::vector<std::string>{"w f32 (2, 3)", "b f32 (1,)"}, "names and shapes");
  });
}

TEST_CASE("fsdp_apply_gradients: rows that do not divide are sharded unevenly, an error in MLX; a negative max_norm is refused") {
  test::run_ranks(3, [](Group& world) {
    Tensor weight(DType::f32, Shape{5, 2}), gradient = filled(Shape{5, 2}, 1.f);
    Recorder optimizer;
    const Tree gradients{{"w", gradient}}, parameters{{"w", weight}};
    fsdp_apply_gradients(world, gradients, parameters, optimizer);
    expect(optimizer.seen[0] == (world.rank() < 2 ? "w f32 (2, 2)" : "w f32 (1, 2)") && is(weight, -1.f), "5 rows over 3 ranks");
    const std::string text =
        failure_of<InvalidArgument>([&] { fsdp_apply_gradients(world, gradients, parameters, optimizer, {.max_norm = -1.0}); });
    expect(text.find("max_norm is -1") != std::string::npos, text);
  });
}

TEST_CASE("clip_grad_norm_sharded: the norm over all shards, before clipping") {
  test::run_ranks(2, [](Group& world) {
    Tensor shard = filled(Shape{2}, 3.f);
    expect(std::abs(clip_grad_norm_sharded(world, Tree{{"w", shard}}, 3.0) - 6.0) < 1e-6, "norm");
    expect(is(shard, 1.5f), "scaled by 3 / 6");
  });
}

TEST_CASE("fully_shard: gathered for use, gradients averaged into shards; scalars and uneven rows too, which MLX refuses") {
  test::run_ranks(2, [](Group& world) {
    Tensor weight = filled(Shape{3, 2}, 1.f), scale = filled(Shape{}, 2.f);
    FullyShard sharded(world);
    sharded.add("block", Tree{{"w", weight}, {"s", scale}});
    const auto full = sharded.forward(0);
    expect(full.parameters().at("w").shape() == Shape{3, 2} && is(full.parameters().at("w"), 1.f), "gathered");
    expect(is(full.parameters().at("s"), 2.f), "scalar");
    Tensor dw = filled(Shape{3, 2}, world.rank() == 0 ? 1.f : 3.f), ds = filled(Shape{}, world.rank() == 0 ? 1.f : 3.f);
    sharded.reduce_gradients(0, Tree{{"w", dw}, {"s", ds}});
    sharded.finish();
    expect(is(sharded.gradients().at("block.w"), 2.f), "mean");
    expect(sharded.parameters().at("block.w").shape() == Shape{world.rank() == 0 ? 2 : 1, 2}, "rows");
    expect(sharded.parameters().at("block.s").shape() == Shape{world.rank() == 0 ? 1 : 0}, "the scalar's owner");
  });
}

TEST_CASE("sharded layers: all-to-sharded sums gradients of the input, sharded-to-all the output; what does not divide is refused") {
  test::run_ranks(2, [](Group& world) {
    Tensor values = filled(Shape{4}, 1.f);
    AllToSharded enter(world);
    ShardedToAll leave(world);
    enter.forward(values);
    leave.backward(values);
    expect(is(values, 1.f), "as they are");
    enter.backward(values);
    expect(is(values, 2.f), "gradients of the input");
    leave.forward(values);
    expect(is(values, 4.f), "output");

    Tensor fused(DType::f32, Shape{6});
    std::iota(fused.values<float>().begin(), fused.values<float>().end(), 0.f);
    const Tensor part = shard_axis(world, fused, 0, std::vector<std::int64_t>{2, 4});
    const auto own = part.values<float>();
    const std::vector<float> first{0, 2, 3}, second{1, 4, 5};
    expect(std::vector<float>(own.begin(), own.end()) == (world.rank() == 0 ? first : second), "each segment is cut");
    expect(failure_of<InvalidArgument>([&] { (void)shard_axis(world, filled(Shape{3, 2}, 0.f), 0); }).find("do not divide by 2 ranks") !=
               std::string::npos,
           "3 rows");
  });
}
