// Ranks fit a line through points together, and go on without those that are lost. Run it, with 5000 steps that take 5 ms more than they
// need, and kill some of its processes:
//   ringlet launch --elastic 2:4 -- elastic 5000 5
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <ringlet/ringlet.hpp>
#include <utility>
#include <vector>

namespace {

constexpr std::uint64_t kBatch = 64;
constexpr float kSlope = 3, kOffset = -2, kRate = 0.01f;

/// Slope and offset, which are equal on all ranks after each step.
using Line = std::vector<float>;

/// The mean gradient of this rank's part of the step's batch, which is the same however many ranks there are.
void compute_gradient(const ringlet::Step& step, const Line& line, Line& gradient) {
  std::minstd_rand random(static_cast<unsigned>(step.number()) + 1);
  gradient = {0, 0};
  for (std::uint64_t sample = 0; sample < kBatch; ++sample) {
    const float x = static_cast<float>(random() % 2000) / 1000 - 1;
    if (sample < step.first() || sample >= step.first() + step.count()) continue;
    const float error = line[0] * x + line[1] - (kSlope * x + kOffset);
    gradient[0] += 2 * error * x / static_cast<float>(step.count());
    gradient[1] += 2 * error / static_cast<float>(step.count());
  }
}

void say(const ringlet::MembershipChange& change) {
  if (change.world.rank() != 0) return;
  const double pause_ms = std::chrono::duration<double, std::milli>(change.pause).count();
  const auto ranks = change.world.size() + static_cast<int>(change.lost.size());
  if (change.joined > 0)
    std::printf("step %d: %d ranks go on, %d of them new, after %.1f ms\n", static_cast<int>(change.step), change.world.size(),
                change.joined, pause_ms);
  else
    std::printf("step %d: %d of %d ranks go on after %.1f ms: %s\n", static_cast<int>(change.step), change.world.size(), ranks, pause_ms,
                change.cause.text().c_str());
  std::fflush(stdout);
}

void train(ringlet::Group world, std::uint64_t steps, useconds_t pause_us) {
  Line line{0, 0}, gradient{0, 0};
  ringlet::Checkpoint state;
  state.add("model", ringlet::Tree{{"line", line}});
  ringlet::ElasticTrainer trainer(std::move(world), state, {.on_change = say});
  trainer.run({.steps = steps, .batch = kBatch}, [&](ringlet::Step& step) {
    compute_gradient(step, line, gradient);
    ::usleep(pause_us);
    step.average({{"line", gradient}});
    // On all that are left, or on none: then the step is done again.
    step.commit([&] {
      for (std::size_t i = 0; i < line.size(); ++i) line[i] -= kRate * gradient[i];
    });
  });
  std::printf("rank %d of %d is done: y = %g x + %g\n", trainer.world().rank(), trainer.world().size(), static_cast<double>(line[0]),
              static_cast<double>(line[1]));
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t steps = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20'000;
  const auto pause_us = static_cast<useconds_t>(1000 * (argc > 2 ? std::atoi(argv[2]) : 0));
  try {
    ringlet::Group world = ringlet::init();
    std::printf("rank %d of %d begins, process %d\n", world.rank(), world.size(), static_cast<int>(::getpid()));
    std::fflush(stdout);
    train(std::move(world), steps, pause_us);
    return 0;
  } catch (const ringlet::Error& error) {
    std::fprintf(stderr, "elastic: %s\n", error.what());
    return 1;
  }
}
