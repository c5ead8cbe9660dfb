// A rank that sums and averages, in the group of all ranks and in one that is split from it, until the file appears that is its argument.
// It checks each result, and says how each group divides its work when that has changed. parts_test starts it.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <ringlet/ringlet.hpp>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t kCount = 150'000;

/// A group, and what it last said of itself.
struct Watched {
  const char* name;
  ringlet::Group group;
  std::string told{};

  void tell() {
    std::string now = group.describe_placement();
    if (now == told) return;
    std::printf("%s: %s\n", name, now.c_str());
    std::fflush(stdout);
    told = std::move(now);
  }
};

bool sums_are_right(ringlet::Group& group) {
  std::vector<float> values(kCount, static_cast<float>(group.rank() + 1));
  group.all_sum(values);
  return values == std::vector<float>(kCount, static_cast<float>(group.size() * (group.size() + 1) / 2));
}

/// Whether all ranks get the same bits of an average.
bool averages_are_equal(ringlet::Group& group, std::mt19937& random) {
  std::vector<float> values(kCount);
  for (float& value : values) value = static_cast<float>(random()) / 3;
  group.all_mean(values, values);
  std::uint64_t hash = 14'695'981'039'346'656'037u;
  for (const float value : values) {
    std::uint32_t bits = 0;
    static_assert(sizeof bits == sizeof value);
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 1'099'511'628'211u;
  }
  std::vector<std::uint64_t> least{hash}, most{hash};
  group.all_min(least);
  group.all_max(most);
  return least == most;
}

bool all_stop(ringlet::Group& world, const char* file) {
  std::vector<std::int32_t> stop{std::ifstream(file).good() ? 1 : 0};
  world.all_max(stop);
  return stop[0] != 0;
}

}  // namespace

int main(int, char** argv) {
  try {
    ringlet::Group world = ringlet::init({.strict = true});
    std::mt19937 random(static_cast<unsigned>(world.rank()));
    Watched groups[]{{"world", world}, {"reversed", world.split(0, world.size() - world.rank()).value()}};
    bool right = true;
    while (!all_stop(world, argv[1])) {
      for (Watched& one : groups) {
        one.tell();
        right = right && sums_are_right(one.group) && averages_are_equal(one.group, random);
      }
    }
    std::printf("%s\n", right ? "all is right" : "a result is wrong");
    return right ? 0 : 1;
  } catch (const ringlet::Error& error) {
    std::printf("failed: %s\n", error.what());
    return 1;
  }
}
