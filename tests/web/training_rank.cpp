// A native rank that trains with all other ranks of its world until one wants to end. Prints "training" after the first step, then the
// result.

#include <cstdio>
#include <exception>
#include <ringlet/ringlet.hpp>

#include "tests/web/small_training.hpp"

int main() {
  try {
    ringlet::InitOptions options;
    options.strict = true;
    ringlet::Group group = ringlet::init(options);
    ringlet::test::SmallTraining training(group.rank(), group.size());
    bool goes_on = true;
    while (goes_on) {
      group.all_sum(training.contribute(false));
      goes_on = training.step();
      if (training.steps() == 1) std::puts("training");
      std::fflush(stdout);
    }
    std::puts(training.result().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "training_rank: %s\n", error.what());
    return 1;
  }
}
