// Ranks fit a line through points together, and go on without those that are lost. Run it, and kill some of its processes:
//   ringlet launch --elastic -n 4 -- elastic 20000
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <ringlet/ringlet.hpp>
#include <vector>

namespace {

constexpr int kBatch = 64;
constexpr float kSlope = 3, kOffset = -2, kRate = 0.01f;

/// What has to be equal on all ranks after each step.
struct State {
  int step = 0;
  std::vector<float> line{0, 0};  // slope, offset
};

/// The sum of the gradients of this rank's part of the step's batch. The batch is the same however many ranks there are.
std::vector<float> gradient_of(const State& state, int rank, int size) {
  std::minstd_rand random(static_cast<unsigned>(state.step) + 1);
  std::vector<float> gradient{0, 0};
  for (int sample = 0; sample < kBatch; ++sample) {
    const float x = static_cast<float>(random() % 2000) / 1000 - 1;
    if (sample % size != rank) continue;
    const float error = state.line[0] * x + state.line[1] - (kSlope * x + kOffset);
    gradient[0] += 2 * error * x;
    gradient[1] += 2 * error;
  }
  return gradient;
}

void train(ringlet::Group world, int steps) {
  State state;
  while (state.step < steps) {
    std::vector<float> gradient = gradient_of(state, world.rank(), world.size());
    bool has_sum = true;
    try {
      world.all_sum(gradient);
    } catch (const ringlet::PeerLost&) {
      has_sum = false;
    }
    // All that are left take the step, or none does.
    if (world.agree(has_sum)) {
      for (std::size_t i = 0; i < state.line.size(); ++i) state.line[i] -= kRate * gradient[i] / kBatch;
      ++state.step;
    } else {
      const ringlet::Reformed next = world.reform();
      if (next.world.rank() == 0)
        std::printf("step %d: %d of %d ranks go on\n", state.step, next.world.size(), world.size()), std::fflush(stdout);
      world = next.world;
    }
  }
  std::printf("rank %d of %d is done: y = %g x + %g\n", world.rank(), world.size(), static_cast<double>(state.line[0]),
              static_cast<double>(state.line[1]));
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 20'000;
  try {
    const ringlet::Group world = ringlet::init();
    std::printf("rank %d of %d begins, process %d\n", world.rank(), world.size(), static_cast<int>(::getpid()));
    std::fflush(stdout);
    train(world, steps);
    return 0;
  } catch (const ringlet::Error& error) {
    std::fprintf(stderr, "elastic: %s\n", error.what());
    return 1;
  }
}
