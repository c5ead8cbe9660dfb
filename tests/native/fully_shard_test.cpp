#include <catch2/catch.hpp>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"
#include "tests/native/regression.hpp"

using namespace ringlet;
using test::expect;
using test::failure_of;
using test::Regression;

namespace {

/// Makes a stack of modules, each with its own targets.
std::vector<Regression> make_modules() {
  std::vector<Regression> modules;
  modules.reserve(4);
  for (const auto& shapes : {test::kUnevenShapes, test::kEvenShapes, test::kUnevenShapes, test::kEvenShapes}) modules.emplace_back(shapes);
  return modules;
}

void copy_all(const Tree& from, const Tree& to) {
  for (std::size_t i = 0; i < from.size(); ++i) copy(from[i].values, to[i].values);
}

/// Takes a forward and a backward pass over sharded modules. `work` uses the full parameters and makes the gradients.
void train_step(FullyShard& sharded, std::vector<Regression>& work, int rank, int step) {
  for (std::size_t m = 0; m < work.size(); ++m) {
    const auto unsharded = sharded.forward(m);
    expect(unsharded.parameters().size() == work[m].parameters().size(), "names");
  }
  for (std::size_t m = work.size(); m-- > 0;) {
    const auto unsharded = sharded.backward(m);
    copy_all(unsharded.parameters(), work[m].parameters());
    work[m].compute_gradients(rank, step);
    sharded.reduce_gradients(m, work[m].gradients());
  }
  sharded.finish();
}

}  // namespace

TEST_CASE("fully sharded training follows plain data parallelism") {
  const int ranks = GENERATE(1, 2, 3, 4);
  const int prefetch = GENERATE(0, 1, 3);
  const std::vector<double> weights = ranks == 3 ? std::vector<double>{1, 2, 0.5} : std::vector<double>{};
  CAPTURE(ranks, prefetch);
  test::run_ranks(ranks, [&](Group& world) {
    std::vector<Regression> plain = make_modules(), work = make_modules();
    FullyShard sharded(world, {.shard_weights = weights, .prefetch = prefetch});
    for (std::size_t m = 0; m < work.size(); ++m) expect(sharded.add("block" + std::to_string(m), work[m].parameters()) == m, "numbers");
    AdamW sharded_optimizer(0.01), plain_optimizer(0.01);
    Tree all_gradients, all_parameters;
    for (std::size_t m = 0; m < plain.size(); ++m) {
      all_gradients.add("block" + std::to_string(m), plain[m].gradients());
      all_parameters.add("block" + std::to_string(m), plain[m].parameters());
    }
    for (int step = 0; step < 30; ++step) {
      train_step(sharded, work, world.rank(), step);
      const double norm = clip_grad_norm_sharded(world, sharded.gradients(), 1.0);
      sharded_optimizer.apply_gradients(sharded.gradients(), sharded.parameters());

      for (auto& module : plain) module.compute_gradients(world.rank(), step);
      average_gradients(world, all_gradients);
      expect(std::abs(norm - clip_grad_norm(all_gradients, 1.0)) < 1e-4 * norm, "norm");
      plain_optimizer.apply_gradients(all_gradients, all_parameters);
    }
    for (std::size_t m = 0; m < work.size(); ++m) {
      copy_all(sharded.forward(m).parameters(), work[m].parameters());
      expect(work[m].distance(plain[m]) < 2e-5f, "distance " + std::to_string(work[m].distance(plain[m])));
    }
    sharded.finish();
    double bytes = static_cast<double>(sharded.parameters().bytes());
    world.all_sum(std::span(&bytes, 1));
    expect(bytes == static_cast<double>(all_parameters.bytes()), "every row is at one rank");
    expect(sharded.layout().count(world.rank()) * sizeof(float) == sharded.parameters().bytes(), "layout");
  });
}

TEST_CASE("parameters are gathered in the compute dtype, gradients come back in the shards'") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> weight(6, 1.5f);
    FullyShard sharded(world, {.compute_dtype = DType::bf16, .reduce_dtype = DType::f32});
    sharded.add("m", Tree{{"w", weight}});
    {
      const auto unsharded = sharded.forward(0);
      expect(unsharded.parameters().at("w").dtype() == DType::bf16, "compute dtype");
      expect(reinterpret_cast<const BFloat16*>(unsharded.parameters().at("w").data())[5] == BFloat16{0x3fc0}, "1.5");
    }
    std::vector<BFloat16> gradient(6, {world.rank() == 0 ? std::uint16_t{0x3f80} : std::uint16_t{0x4000}});  // 1 and 2
    sharded.reduce_gradients(0, Tree{{"w", gradient}});
    sharded.finish();
    const TensorView& shard = sharded.gradients().at("m.w");
    expect(shard.dtype() == DType::f32 && shard.count() == 3, "the shard's dtype");
    expect(*reinterpret_cast<const float*>(shard.data()) == 1.5f, "the mean");
  });
}

TEST_CASE("an unsharded module outlives a step with its old parameters; the next gather brings the new ones") {
  test::run_ranks(GENERATE(1, 2), [](Group& world) {
    std::vector<float> weight(4, 1.f), gradient(4, 1.f);
    FullyShard sharded(world);
    sharded.add("m", Tree{{"w", weight}});
    const auto before = sharded.forward(0);
    sharded.reduce_gradients(0, Tree{{"w", gradient}});
    sharded.finish();
    SGD(1.0).apply_gradients(sharded.gradients(), sharded.parameters());
    const auto first = [](const FullyShard::Unsharded& module) {
      return *reinterpret_cast<const float*>(module.parameters()[0].values.data());
    };
    expect(first(before) == 1.f, "old");
    expect(first(sharded.forward(0)) == 0.f, "new");
    sharded.finish();
  });
}

TEST_CASE("gradients in blocks have the bits of FsdpUpdater's, and what is left of a module waits for its next gradients") {
  const int ranks = GENERATE(1, 2, 3);
  const bool feedback = GENERATE(false, true);
  const Wire wire =
      GENERATE_COPY(Wire::int8({.feedback = feedback, .least_elements = 0}), Wire::int4({.feedback = feedback, .least_elements = 20}));
  CAPTURE(ranks, feedback, name_of(wire));
  test::run_ranks(ranks, [&](Group& world) {
    std::vector<Regression> work = make_modules(), full = make_modules();
    FullyShard sharded(world, {.reduce_dtype = wire});
    std::vector<FsdpUpdater> updaters;
    for (std::size_t m = 0; m < work.size(); ++m) {
      sharded.add("block" + std::to_string(m), work[m].parameters());
      updaters.emplace_back(world, FsdpOptions{.reduce_dtype = wire});
    }
    SGD optimizer(0.05);
    for (int step = 0; step < 8; ++step) {
      for (std::size_t m = work.size(); m-- > 0;) {
        copy_all(sharded.backward(m).parameters(), work[m].parameters());
        expect(work[m].same_bits(full[m]), "the parameters of module " + std::to_string(m) + " in step " + std::to_string(step));
        if (static_cast<std::size_t>(step) % 4 == m) continue;
        work[m].compute_gradients(world.rank(), step);
        full[m].compute_gradients(world.rank(), step);
        sharded.reduce_gradients(m, work[m].gradients());
        updaters[m].apply_gradients(full[m].gradients(), full[m].parameters(),
                                    [&](const Tree& g, const Tree& p) { optimizer.apply_gradients(g, p); });
      }
      sharded.finish();
      optimizer.apply_gradients(sharded.gradients(), sharded.parameters());
    }
  });
}

TEST_CASE("modules without gradients in a step are left out") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> a(4, 1.f), b(4, 1.f);
    FullyShard sharded(world);
    sharded.add("a", Tree{{"w", a}});
    sharded.add("b", Tree{{"w", b}});
    sharded.reduce_gradients(1, Tree{{"w", b}});
    sharded.finish();
    expect(sharded.gradients().size() == 1 && sharded.gradients()[0].name == "b.w", "b alone");
  });
}

TEST_CASE("sharding refuses what does not fit and names it") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> values(4), other(5);
    FullyShard sharded(world);
    sharded.add("m", Tree{{"w", values}});
    const auto refused = [](auto action, const std::string& wanted) {
      const std::string text = failure_of<InvalidArgument>(action);
      expect(text.find(wanted) != std::string::npos, text);
    };
    refused([&] { sharded.forward(1); }, "there is no module 1; 1 were added");
    refused([&] { sharded.reduce_gradients(0, Tree{{"w", other}}); }, "(5,)");
    refused([&] { FullyShard(world, {.prefetch = -1}); }, "prefetch is -1");
    refused([&] { FullyShard(world, {.compute_dtype = DType::u8}); }, "compute_dtype is u8");
    refused([&] { sharded.add("m", Tree{{"w", values}}); }, "already");
    sharded.reduce_gradients(0, Tree{{"w", values}});
    refused([&] { sharded.reduce_gradients(0, Tree{{"w", values}}); }, "'m' were given already");
    sharded.finish();
    const std::string text = failure_of<MismatchError>([&] { sharded.add("n", Tree{{world.rank() == 0 ? "x" : "y", values}}); });
    expect(text.find("'n.x'") != std::string::npos && text.find("'n.y'") != std::string::npos, text);
  });
}
