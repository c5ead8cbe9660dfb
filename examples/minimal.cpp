// Each rank contributes its number, and all ranks get the sum. Run it with: ringlet launch -n 4 -- minimal
#include <cstdio>
#include <ringlet/ringlet.hpp>
#include <vector>

int main() {
  try {
    ringlet::Group group = ringlet::init();
    std::vector<int> sum{group.rank()};
    group.all_sum(sum);
    std::printf("rank %d of %d: the sum of all ranks is %d\n", group.rank(), group.size(), sum[0]);
  } catch (const ringlet::Error& error) {
    std::fprintf(stderr, "minimal: %s\n", error.what());
    return 1;
  }
}
