// What a rank that joins costs the others: their longest step, beside their usual one.
//   RINGLET_TOKEN=... ringlet launch --elastic -n 2 -- build/release/bin/growth_bench 10
//   RINGLET_TOKEN=... RINGLET_JOIN=<the door that it prints> build/release/bin/growth_bench 10
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ringlet/ringlet.hpp>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kStepsAfter = 200;

struct Done {};

}  // namespace

int main(int argc, char** argv) {
  const auto millions = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10;
  try {
    ringlet::Group world = ringlet::init();
    const bool joins = world.epoch() > 0;
    if (world.rank() == 0) fmt::print("RINGLET_JOIN={}\n", world.door()), std::fflush(stdout);
    std::vector<float> parameters(millions * 1'000'000, joins ? 0.0f : 1.0f), gradient(1 << 18, 1.0f);
    std::vector<double> milliseconds;
    double pause = 0;
    int steps_after = -1;
    ringlet::Checkpoint state;
    state.add("model", ringlet::Tree{{"parameters", parameters}});
    ringlet::ElasticTrainer trainer(std::move(world), state, {.on_change = [&](const ringlet::MembershipChange& change) {
                                      if (change.joined == 0) return;
                                      pause = std::chrono::duration<double, std::milli>(change.pause).count();
                                      steps_after = 0;
                                    }});
    world = ringlet::Group();
    auto last = Clock::now();
    try {
      trainer.run({.steps = 1'000'000, .batch = 64}, [&](ringlet::Step& step) {
        const auto now = Clock::now();
        milliseconds.push_back(std::chrono::duration<double, std::milli>(now - last).count());
        last = now;
        step.average({{"gradient", gradient}});
        step.commit([] {});
        if (joins && steps_after < 0) steps_after = 0;
        if (steps_after >= 0 && ++steps_after > kStepsAfter) throw Done();
      });
    } catch (const Done&) {
    }
    if (trainer.world().rank() != 0) return 0;
    const double longest = *std::max_element(milliseconds.begin() + 1, milliseconds.end());
    std::nth_element(milliseconds.begin(), milliseconds.begin() + static_cast<std::ptrdiff_t>(milliseconds.size() / 2), milliseconds.end());
    fmt::print("{} M parameters (f32): a step takes {:.2f} ms (median), the longest {:.1f} ms; the ranks stood still for {:.1f} ms\n",
               millions, milliseconds[milliseconds.size() / 2], longest, pause);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "growth_bench: {}\n", error.what());
    return 1;
  }
}
