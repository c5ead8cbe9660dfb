// A rank that moves a pattern in several ways, for tests of what others see of it. At first only rank 0 has the pattern.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ringlet/ringlet.hpp>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string pattern = argv[1];
  try {
    ringlet::Group world = ringlet::init({.strict = true});
    std::vector<std::uint8_t> expected;
    while (expected.size() < 300'000) expected.insert(expected.end(), pattern.begin(), pattern.end());
    bool right = true;
    for (const std::size_t bytes : {pattern.size(), expected.size()}) {
      const std::vector<std::uint8_t> part(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(bytes));
      std::vector<std::uint8_t> values = world.rank() == 0 ? part : std::vector<std::uint8_t>(bytes);
      world.all_sum(values);
      right = right && values == part;
      if (world.rank() == 0) world.send(values, 1);
      if (world.rank() == 1) world.recv(values, 0);
      world.broadcast(values, 0);
      right = right && values == part;
    }
    world.barrier();
    std::printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
  } catch (const ringlet::Error& error) {
    std::printf("failed: %s\n", error.what());
    return 1;
  }
}
