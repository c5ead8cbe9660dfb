#include <cstdio>
#include <ringlet/ringlet.hpp>

int main() {
  ringlet::Group world = ringlet::init({.strict = true});
  std::vector<float> x{static_cast<float>(world.rank() + 1)};
  world.all_sum(x);
  if (world.rank() == 0) std::printf("sum over %d ranks: %g\n", world.size(), static_cast<double>(x[0]));
}
