// How fast the fastest target reduces, against a plain loop that the compiler vectorises for this machine. Contestants take turns within
// one run, so that a change of clock or load hits them all alike.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "simd/kernels.hpp"

/// data[i] = data[i] + other[i], in a file of its own that is compiled for this machine alone.
void plain_sum_f32(float* __restrict data, const float* __restrict other, std::size_t count);

namespace {

using ringlet::DType;
using ringlet::ReduceOp;

struct Contestant {
  std::string name;
  DType dtype;
  ringlet::simd::ReduceFn reduce;
  std::vector<double> picoseconds;  // per element, one entry per turn
};

void plain_sum(std::byte* out, const std::byte*, const std::byte* b, std::size_t count) {
  plain_sum_f32(reinterpret_cast<float*>(out), reinterpret_cast<const float*>(b), count);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Two arrays on their own pages, `shift` bytes past the page's start. All zeros: sums stay zero, however often they are taken.
struct Arrays {
  Arrays(std::size_t bytes, std::size_t shift) : memory(2 * bytes + 4 * kPage), shift_(shift), bytes_(bytes) {}
  std::byte* first() { return aligned() + shift_; }
  std::byte* second() { return aligned() + (bytes_ / kPage + 1) * kPage + kPage / 2 + shift_; }

 private:
  static constexpr std::size_t kPage = 4096;
  std::byte* aligned() { return memory.data() + (kPage - reinterpret_cast<std::uintptr_t>(memory.data()) % kPage) % kPage; }
  std::vector<std::byte> memory;
  std::size_t shift_;
  std::size_t bytes_;
};

void take_turns(std::vector<Contestant>& contestants, std::size_t count, std::size_t shift, int turns) {
  Arrays arrays(count * sizeof(double), shift);
  const std::size_t repeats = std::max<std::size_t>(1, 4'000'000 / std::max<std::size_t>(count, 1));
  for (int turn = -1; turn < turns; ++turn) {
    for (Contestant& contestant : contestants) {
      // Processor time: what other programs take from this one is no property of a kernel.
      const std::clock_t start = std::clock();
      for (std::size_t i = 0; i < repeats; ++i) contestant.reduce(arrays.first(), arrays.first(), arrays.second(), count);
      const double picoseconds = static_cast<double>(std::clock() - start) * (1e12 / CLOCKS_PER_SEC);
      if (turn >= 0) contestant.picoseconds.push_back(picoseconds / static_cast<double>(repeats * count));
    }
  }
}

std::vector<Contestant> make_contestants(const ringlet::simd::Kernels& kernels) {
  std::vector<Contestant> all{{"plain f32 sum", DType::f32, plain_sum, {}}};
  const auto add = [&](DType dtype, ReduceOp op) {
    all.push_back({fmt::format("{} {}", name_of(dtype), name_of(op)), dtype, kernels.reduce(dtype, op), {}});
  };
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i8, DType::complex64}) add(dtype, ReduceOp::sum);
  add(DType::f32, ReduceOp::prod);
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) add(dtype, ReduceOp::max);
  return all;
}

void report(const ringlet::simd::Kernels& kernels, const char* place, std::size_t count, std::size_t shift,
            std::vector<Contestant>& contestants, bool json) {
  const double plain = median(contestants.front().picoseconds);
  if (!json) fmt::print("\n{}, {}: {} elements, {} bytes past a page\n", kernels.name(), place, count, shift);
  for (const Contestant& contestant : contestants) {
    const double time = median(contestant.picoseconds);
    const double gigabytes = 3e3 * static_cast<double>(size_of(contestant.dtype)) / time;
    if (json) {
      const nlohmann::json row{{"target", kernels.name()},
                               {"place", place},
                               {"count", count},
                               {"shift", shift},
                               {"kernel", contestant.name},
                               {"ps_per_element", time},
                               {"gigabytes_per_s", gigabytes},
                               {"ratio_to_plain_f32", time / plain}};
      fmt::print("{}\n", row.dump());
    } else {
      fmt::print("  {:<16}{:9.1f} ps/element{:9.1f} GB/s{:8.2f} x plain f32\n", contestant.name, time, gigabytes, time / plain);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times the reduction kernels in the caches and in memory");
  std::string target;
  bool json = false;
  int turns = 21;
  std::size_t shift = 0;
  app.add_option("--target", target, "scalar, sse4.1, avx2, avx512, neon64 (default: the fastest)");
  app.add_flag("--json", json, "one JSON object per line");
  app.add_option("--turns", turns, "measurements of each kernel and size; the median counts")->check(CLI::PositiveNumber);
  app.add_option("--shift", shift, "bytes by which the arrays miss a page's start")->check(CLI::Range(0, 2'047));
  CLI11_PARSE(app, argc, argv);
  const ringlet::simd::Kernels* kernels = ringlet::simd::find(target);
  if (kernels == nullptr) {
    fmt::print(stderr, "kernel_bench: this CPU or build has no target \"{}\"; it has:", target);
    for (const auto* each : ringlet::simd::available()) fmt::print(stderr, " {}", each->name());
    fmt::print(stderr, "\n");
    return 2;
  }
  struct Place {
    const char* name;
    std::size_t count;
  };
  for (const Place& place : {Place{"L1", 2'048}, Place{"L2", 65'536}, Place{"memory", 16'777'216}}) {
    auto contestants = make_contestants(*kernels);
    take_turns(contestants, place.count, shift, turns);
    report(*kernels, place.name, place.count, shift, contestants, json);
  }
}
