// What the commit of a step costs: steps with the ranks' agreement and without it, in turns, in one run. Several steps are taken in a row,
// as training does it: a rank that is done with one before the others waits for them in the next one's averages, if not in the agreement.
//   ringlet launch --elastic -n 4 -- build/release/bench/vote_bench
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <ringlet/ringlet.hpp>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

constexpr int kStepsInRow = 10;

/// Of one step. The ranks begin and end together, so that none measures another's lateness.
double seconds_of(ringlet::Group& world, std::vector<float>& gradients, bool votes) {
  world.barrier();
  const auto begin = Clock::now();
  for (int step = 0; step < kStepsInRow; ++step) {
    ringlet::average_gradients(world, std::vector<ringlet::TensorView>{gradients});
    if (votes && !world.agree(true)) throw std::runtime_error("the ranks have not agreed");
  }
  world.barrier();
  return std::chrono::duration<double>(Clock::now() - begin).count() / kStepsInRow;
}

}  // namespace

int main() {
  try {
    ringlet::Group world = ringlet::init({.strict = true});
    if (world.rank() == 0)
      fmt::print("{} ranks; medians of a step's averages in microseconds\n{:>12} {:>10} {:>10} {:>8} {:>8}\n", world.size(), "gradients",
                 "without", "with vote", "vote", "ratio");
    for (const std::size_t kib : {4, 64, 256, 1024, 4096, 16384, 65536}) {
      std::vector<float> gradients(kib * 256, 1.0f);
      const int pairs = kib <= 1024 ? 100 : kib <= 16384 ? 20 : 5;
      std::vector<double> without, with;
      for (int pair = -1; pair < pairs; ++pair) {
        const double plain = seconds_of(world, gradients, false), voted = seconds_of(world, gradients, true);
        if (pair < 0) continue;
        without.push_back(plain);
        with.push_back(voted);
      }
      const double plain = median(without), voted = median(with);
      if (world.rank() == 0)
        fmt::print("{:>8} KiB {:>10.1f} {:>10.1f} {:>8.1f} {:>8.3f}\n", kib, plain * 1e6, voted * 1e6, (voted - plain) * 1e6,
                   voted / plain);
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "vote_bench: {}\n", error.what());
    return 1;
  }
}
