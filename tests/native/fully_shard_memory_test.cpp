#include <catch2/catch.hpp>

#include "tests/native/expect.hpp"
#include "tests/native/memory_in_use.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using test::expect;

TEST_CASE("a step packs a few modules at a time, however many there are") {
  constexpr std::size_t kModules = 24;
  constexpr std::size_t kElements = 128 << 10;
  constexpr int kRanks = 2;
  test::run_ranks(kRanks, [](Group& world) {
    std::vector<float> values(kElements, 1.f);
    FullyShard sharded(world);
    for (std::size_t module = 0; module < kModules; ++module) sharded.add("m" + std::to_string(module), Tree{{"w", values}});
    world.barrier();
    const std::size_t before = test::memory_in_use();
    world.barrier();
    for (std::size_t module = 0; module < kModules; ++module) static_cast<void>(sharded.forward(module));
    for (std::size_t module = kModules; module-- > 0;) {
      const auto unsharded = sharded.backward(module);
      sharded.reduce_gradients(module, Tree{{"w", values}});
    }
    sharded.finish();
    world.barrier();
    const double modules = static_cast<double>(test::most_memory_in_use() - before) / (sizeof(float) * kElements);
    // Each rank has two gathers, and two reductions with half a module of results each.
    expect(modules < kRanks * 6.0, "packed at most: " + std::to_string(modules) + " modules");
  });
}
