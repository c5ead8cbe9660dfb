#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "native/huge_pages.hpp"
#include "native/reused_buffers.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;

namespace {

constexpr std::size_t kMiB = 1 << 20;
constexpr std::size_t kTested = 16 * kMiB, kTestedHugeKib = 8 * 1024;

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

/// Fresh memory of the system's, which has no huge pages of an earlier owner.
class Fresh {
 public:
  Fresh() : memory_(::mmap(nullptr, kTested, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    test::expect(memory_ != MAP_FAILED, "no memory");
    std::fill(values().begin(), values().end(), 1.0f);
  }
  ~Fresh() { ::munmap(memory_, kTested); }
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;

  std::span<float> values() { return {static_cast<float*>(memory_), kTested / sizeof(float)}; }
  const void* middle() { return &values()[kTested / sizeof(float) / 2]; }

 private:
  void* memory_;
};

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

/// Whether two buffers like those of the test are gathered: the system may be older than that, its owner may not want it, or it has no free
/// huge pages.
bool system_gathers() {
  bool gathered = true;
  for (int i = 0; i < 2; ++i) {
    Fresh memory;
    gathered =
        gathered && native::gather_into_huge_pages(std::as_bytes(memory.values())) && huge_kib_around(memory.middle()) >= kTestedHugeKib;
  }
  return gathered;
}

}  // namespace

TEST_CASE("a long buffer is gathered from its fourth use on, in steps, and again after twice as many uses") {
  Gathered gathered;
  native::ReusedBuffers reused(gathered.gather());
  const std::vector<std::byte> one(40 * kMiB), other(4 * kMiB);
  use(reused, one, 3);
  use(reused, other, 3);
  CHECK(gathered.buffers.empty());
  const auto check_all_of_one = [&] {
    const std::byte* next = one.data();
    for (const ConstBytes step : gathered.buffers) {
      CHECK(step.data() == next);
      CHECK(step.size() <= native::ReusedBuffers::kStepBytes);
      next += step.size();
      if (next != one.data() + one.size()) CHECK(reinterpret_cast<std::uintptr_t>(next) % native::ReusedBuffers::kStepBytes == 0);
    }
    CHECK(next == one.data() + one.size());
  };
  use(reused, one, 4);
  check_all_of_one();
  for (int uses = 8; uses < 64; uses *= 2) {
    gathered.buffers.clear();
    use(reused, one, uses);
    check_all_of_one();
  }
  gathered.buffers.clear();
  use(reused, other, 1);
  REQUIRE_FALSE(gathered.buffers.empty());
  CHECK(gathered.buffers[0].data() == other.data());
}

TEST_CASE("of many buffers in a circle each is gathered") {
  Gathered gathered;
  native::ReusedBuffers reused(gathered.gather());
  const std::vector<std::byte> memory(5 * kMiB);
  for (int round = 0; round < 4; ++round)
    for (std::size_t i = 0; i < 1000; ++i) reused.used(ConstBytes(memory).subspan(i, 4 * kMiB));
  CHECK(gathered.buffers.size() == 1000);
}

TEST_CASE("buffers that never come again are not gathered") {
  Gathered gathered;
  native::ReusedBuffers reused(gathered.gather());
  const std::vector<std::byte> memory(8 * kMiB);
  for (std::size_t i = 0; i < 5'000; ++i) reused.used(ConstBytes(memory).subspan(i, 4 * kMiB));
  CHECK(gathered.buffers.empty());
}

TEST_CASE("a buffer is long from 4 MiB on") {
  const std::vector<std::byte> memory(4 * kMiB);
  CHECK(native::ReusedBuffers::is_long(memory));
  CHECK_FALSE(native::ReusedBuffers::is_long(ConstBytes(memory).first(memory.size() - 1)));
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
  native::gather_into_huge_pages(std::as_bytes(std::span(values)));
  bool kept = true;
  for (std::size_t i = 0; i < values.size(); ++i) kept = kept && values[i] == i + 7;
  CHECK(kept);
}

TEST_CASE("a buffer that ranks of one machine reduce again and again lies in huge pages, unless they may not read each other's memory") {
  if (!system_gathers()) {
    WARN("this system gathers no memory into huge pages");
    return;
  }
  const bool peer_memory = GENERATE(true, false);
  std::atomic<std::size_t> before = 0, after = 0;
  test::run_ranks(
      2,
      [&](Group& world) {
        Fresh memory;
        const std::span<float> values = memory.values();
        world.all_sum(values);
        before += huge_kib_around(memory.middle());
        for (int i = 0; i < 7; ++i) world.all_mean(values);
        after += huge_kib_around(memory.middle());
        test::expect(std::all_of(values.begin(), values.end(), [](float value) { return value == 2.0f; }), "wrong sums");
        world.barrier();  // both mappings are there until both were looked at
      },
      [&](native::WorldConfig& config) { config.peer_memory = peer_memory; });
  if (before > 0) {
    WARN("this system gives huge pages by itself");
    return;
  }
  CAPTURE(peer_memory);
  if (peer_memory)
    CHECK((after >= 2 * kTestedHugeKib || !system_gathers()));
  else
    CHECK(after == 0);
}
