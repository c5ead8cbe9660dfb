// A rank that runs collectives and messages of all sizes until one fails, and prints which rank it blames. With --twice it forms several
// groups instead; with --rounds N it ends after so many, with --sums each of them is an all_sum, for which all ranks wait, and with --tell
// it prints a line after each twelve. Tests start it by `ringlet launch` and `ringlet run`.

#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ringlet/ringlet.hpp>

namespace {

void one_round(ringlet::Group& world, int round, bool sums_alone) {
  static const std::size_t kSizes[] = {1, 3000, 100'000, 2'000'000};
  std::vector<float> values(kSizes[round % 4], 1.0f);
  switch (sums_alone ? 0 : round % 3) {
    case 0:
      return world.all_sum(values);
    case 1:
      return world.broadcast(values, round % world.size());
    default: {
      const int next = (world.rank() + 1) % world.size();
      const int previous = (world.rank() + world.size() - 1) % world.size();
      std::vector<float> incoming(values.size());
      ringlet::Work sent = world.send_async(values, next);
      world.recv(incoming, previous);
      sent.wait();
    }
  }
}

/// Forms a group, then a second one, and a third beside the second.
int form_two_groups() {
  std::vector<float> one{1};
  ringlet::init({.strict = true}).all_sum(one);
  ringlet::Group second = ringlet::init({.strict = true});
  second.all_sum(one);
  ringlet::Group third = ringlet::init({.strict = true});
  third.all_sum(one);
  second.all_sum(one);
  std::printf("sum %g\n", static_cast<double>(one[0]));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--twice") == 0) return form_two_groups();
  const int rounds = argc > 2 && std::strcmp(argv[1], "--rounds") == 0 ? std::atoi(argv[2]) : INT_MAX;
  const bool sums_alone = argc > 1 && std::strcmp(argv[1], "--sums") == 0;
  const bool tells = argc > 1 && std::strcmp(argv[1], "--tell") == 0;
  std::printf("pid %d\n", static_cast<int>(::getpid()));
  std::fflush(stdout);
  try {
    ringlet::Group world = ringlet::init({.strict = true});
    std::printf("met\n");
    std::fflush(stdout);
    for (int round = 0; round < rounds; ++round) {
      one_round(world, round, sums_alone);
      if (!tells || round % 12 != 11) continue;
      std::printf("12 rounds\n");
      std::fflush(stdout);
    }
  } catch (const ringlet::Error& error) {
    std::printf("blames %d: %s\n", error.status().rank(), error.what());
    return 1;
  }
}
