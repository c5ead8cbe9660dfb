#include <catch2/catch.hpp>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "native/reused_buffers.hpp"
#include "tests/native/ranks.hpp"
#include "transport/local/huge_pages.hpp"

using namespace ringlet;

namespace {

constexpr std::size_t kMiB = 1 << 20;

class Gathered {
 public:
  native::ReusedBuffers::Gather gather(bool goes_on = true) {
    return [this, goes_on](ConstBytes buffer) {
      buffers.push_back(buffer);
      return goes_on;
    };
  }
  std::vector<ConstBytes> buffers;
};

void use(native::ReusedBuffers& reused, ConstBytes buffer, int times) {
  for (int i = 0; i < times; ++i) reused.used(buffer);
}

/// How much of the mapping that has this memory lies in huge pages, in KiB.
std::size_t huge_kib_around(const void* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    char space = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx%c", &begin, &end, &space) == 3 && space == ' ') is_here = begin <= address && address < end;
    if (is_here && line.starts_with("AnonHugePages:")) return std::stoul(line.substr(line.find(':') + 1));
  }
  return 0;
}

/// Whether the system gathers at all: it may be older than that, or its owner may not want it.
bool system_gathers() {
  std::vector<std::byte> memory(16 * kMiB, std::byte{1});
  return local::gather_into_huge_pages(memory) && huge_kib_around(memory.data() + 8 * kMiB) > 0;
}

}  // namespace

TEST_CASE("a long buffer is gathered at its fourth use, and at each second power of two after that") {
  Gathered gathered;
  native::ReusedBuffers reused(gathered.gather());
  const std::vector<std::byte> one(8 * kMiB), other(4 * kMiB);
  use(reused, one, 3);
  CHECK(gathered.buffers.empty());
  use(reused, other, 3);
  use(reused, one, 1);
  REQUIRE(gathered.buffers.size() == 1);
  CHECK(gathered.buffers[0].data() == one.data());
  CHECK(gathered.buffers[0].size() == one.size());
  use(reused, one, 28);
  CHECK(gathered.buffers.size() == 4);
  use(reused, other, 1);
  CHECK(gathered.buffers.back().data() == other.data());
}

TEST_CASE("short buffers are not gathered, nor those that never come again") {
  Gathered gathered;
  native::ReusedBuffers reused(gathered.gather());
  const std::vector<std::byte> memory(8 * kMiB);
  const ConstBytes all = memory;
  use(reused, all.first(native::ReusedBuffers::kLongBytes - 1), 100);
  for (std::size_t i = 0; i < 10'000; ++i) reused.used(all.subspan(i % 1000, native::ReusedBuffers::kLongBytes));
  CHECK(gathered.buffers.empty());
}

TEST_CASE("nothing is gathered after the system took too long for it") {
  Gathered gathered;
  native::ReusedBuffers reused(gathered.gather(false));
  const std::vector<std::byte> one(4 * kMiB), other(4 * kMiB);
  use(reused, one, 64);
  use(reused, other, 64);
  CHECK(gathered.buffers.size() == 1);
}

TEST_CASE("what is gathered into huge pages keeps its content") {
  std::vector<std::uint32_t> values(6 * kMiB);
  std::iota(values.begin(), values.end(), 7u);
  local::gather_into_huge_pages(std::as_bytes(std::span(values)));
  bool kept = true;
  for (std::size_t i = 0; i < values.size(); ++i) kept = kept && values[i] == i + 7;
  CHECK(kept);
}

TEST_CASE("a buffer that ranks of one machine reduce again and again lies in huge pages") {
  if (!system_gathers()) {
    WARN("this system gathers no memory into huge pages");
    return;
  }
  test::run_ranks(2, [](Group& world) {
    std::vector<float> values(4 * kMiB, 1.0f);
    world.all_sum(values);
    for (int i = 0; i < 7; ++i) world.all_mean(values);
    test::expect(huge_kib_around(values.data() + values.size() / 2) >= 8 * 1024, "the buffer is not in huge pages");
    test::expect(std::all_of(values.begin(), values.end(), [](float value) { return value == 2.0f; }), "wrong sums");
  });
}
