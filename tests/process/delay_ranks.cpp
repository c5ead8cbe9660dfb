// Ranks of which one holds the others up until somebody writes to a FIFO. delay_test starts them with the arguments WHAT VICTIM FIFO.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <ringlet/ringlet.hpp>
#include <string>

int main(int, char** argv) {
  const std::string what = argv[1];
  const int victim = std::atoi(argv[2]);
  try {
    ringlet::Group world = ringlet::init({.strict = true});
    std::vector<float> values(1000, 1.0F);
    world.all_sum(values);
    std::printf("pid %d\n", static_cast<int>(::getpid()));
    std::fflush(stdout);
    const auto wait_to_go_on = [&] {
      // Opening the FIFO waits until somebody writes.
      std::ifstream fifo(argv[3]);
      std::string word;
      fifo >> word;
    };
    if (world.rank() == victim && what == "computes") wait_to_go_on();
    if (world.rank() == victim && what == "stream") world.all_sum(values, {.stream = ringlet::Stream{7}});
    world.all_sum(values);
    if (what == "rest") wait_to_go_on();
    world.barrier();
    return 0;
  } catch (const ringlet::Error& error) {
    std::printf("failed: %s\n", error.what());
    return 1;
  }
}
