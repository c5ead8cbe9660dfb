// Measures the f32 sum in the first cache, on the named targets and as a scalar loop, and prints one JSON object. The program is built
// natively and for WebAssembly, so that wasm_bench.mjs can run both in turns.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "simd/kernels.hpp"

// The loop is in scalar_loops.cpp, which is compiled without vectors: data[i] = data[i] + other[i].
void scalar_sum_f32(float* data, const float* other, std::size_t count);

namespace {

constexpr std::size_t kCount = 2'048;
constexpr int kRounds = 40;
constexpr int kRepeats = 500;  // of one round

/// Returns picoseconds per element. The shortest round counts, since anything else that the machine does only adds time.
template <class Run>
double time_of(Run run) {
  double best = 1e300;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRepeats; ++i) run();
    const std::chrono::duration<double, std::pico> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / (static_cast<double>(kRepeats) * kCount));
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  alignas(64) static float data[kCount], other[kCount];
  std::printf("{\"loop\": %.1f", time_of([&] { scalar_sum_f32(data, other, kCount); }));
  for (int i = 1; i < argc; ++i) {
    const ringlet::simd::Kernels* kernels = ringlet::simd::find(argv[i]);
    if (kernels == nullptr) {
      std::fprintf(stderr, "sum_times: this CPU or build has no target \"%s\"\n", argv[i]);
      return 2;
    }
    const auto sum = kernels->reduce(ringlet::DType::f32, ringlet::ReduceOp::sum);
    auto* const to = reinterpret_cast<std::byte*>(data);
    const auto* const from = reinterpret_cast<const std::byte*>(other);
    std::printf(", \"%s\": %.1f", argv[i], time_of([&] { sum(to, to, from, kCount); }));
  }
  std::printf("}\n");
}
