// A rank for bench/joining.py: it meets the others, does one all-reduce, and prints a line after each.

#include <cstdio>
#include <ringlet/ringlet.hpp>
#include <vector>

int main() {
  try {
    ringlet::Group world = ringlet::init({.strict = true});
    std::printf("met\n");
    std::fflush(stdout);
    std::vector<float> values(1024, static_cast<float>(world.rank() + 1));
    world.all_sum(values);
    std::printf("sum %g\n", static_cast<double>(values[0]));
  } catch (const ringlet::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
