// Measures how fast the kernels of the fastest target reduce and update, against plain loops that the compiler vectorises for this machine.
// Contestants take turns within one run, so that a change of clock or load hits them all alike.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "simd/kernels.hpp"

// The two loops are in plain_loops.cpp, which alone is compiled for this machine: data[i] = data[i] + other[i], and a step of AdamW.
void plain_sum_f32(float* __restrict data, const float* __restrict other, std::size_t count);
void plain_adamw_f32(float* __restrict parameters, const float* __restrict gradients, float* __restrict m, float* __restrict v,
                     std::size_t count);

namespace {

using ringlet::DType;
using ringlet::ReduceOp;

/// The addresses of four arrays of f64.
using Places = std::array<std::byte*, 4>;

struct Contestant {
  std::string name;
  std::size_t plain;          // index of the contestant that it is compared with
  std::size_t element_bytes;  // read and written, per element
  std::function<void(const Places&, std::size_t count)> run;
  std::vector<double> picoseconds{};  // per element, one entry per turn
};

float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Arrays on their own pages, `shift` bytes past the page's start. All elements are zero, so that repeated sums stay zero.
class Arrays {
 public:
  Arrays(std::size_t bytes, std::size_t shift) : distance_((bytes / kPage + 1) * kPage + kPage / 2), memory_(4 * distance_ + 2 * kPage) {
    std::byte* page = memory_.data() + (kPage - reinterpret_cast<std::uintptr_t>(memory_.data()) % kPage) % kPage;
    for (std::size_t i = 0; i < places_.size(); ++i) places_[i] = page + i * distance_ + shift;
  }
  const Places& places() const { return places_; }

 private:
  static constexpr std::size_t kPage = 4096;
  std::size_t distance_;
  std::vector<std::byte> memory_;
  Places places_{};
};

void take_turns(std::vector<Contestant>& contestants, std::size_t count, std::size_t shift, int turns) {
  Arrays arrays(count * sizeof(double), shift);
  const std::size_t repeats = std::max<std::size_t>(1, 4'000'000 / std::max<std::size_t>(count, 1));
  for (int turn = -1; turn < turns; ++turn) {
    for (Contestant& contestant : contestants) {
      // Processor time leaves out the time that other programs take from this one, which is no property of a kernel.
      const std::clock_t start = std::clock();
      for (std::size_t i = 0; i < repeats; ++i) contestant.run(arrays.places(), count);
      const double picoseconds = static_cast<double>(std::clock() - start) * (1e12 / CLOCKS_PER_SEC);
      if (turn >= 0) contestant.picoseconds.push_back(picoseconds / static_cast<double>(repeats * count));
    }
  }
}

std::vector<Contestant> make_contestants(const ringlet::simd::Kernels& kernels) {
  constexpr std::size_t kPlainSum = 0, kPlainAdamW = 1;
  constexpr std::size_t kSumBytes = 3, kAdamWBytes = 7;  // times the size of an element
  std::vector<Contestant> all{{"plain f32 sum", kPlainSum, kSumBytes * sizeof(float),
                               [](const Places& at, std::size_t count) { plain_sum_f32(floats(at[0]), floats(at[1]), count); }},
                              {"plain f32 adamw", kPlainAdamW, kAdamWBytes * sizeof(float), [](const Places& at, std::size_t count) {
                                 plain_adamw_f32(floats(at[0]), floats(at[1]), floats(at[2]), floats(at[3]), count);
                               }}};
  const auto add = [&](DType dtype, ReduceOp op) {
    all.push_back({fmt::format("{} {}", name_of(dtype), name_of(op)), kPlainSum, kSumBytes * size_of(dtype),
                   [reduce = kernels.reduce(dtype, op)](const Places& at, std::size_t count) { reduce(at[0], at[0], at[1], count); }});
  };
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i8, DType::complex64}) add(dtype, ReduceOp::sum);
  add(DType::f32, ReduceOp::prod);
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) add(dtype, ReduceOp::max);
  // What a bucket does to f32 for the network, and back.
  const auto add_rounding = [&](std::string name, double wire_bytes, auto encode, auto decode) {
    const auto bytes = static_cast<std::size_t>(sizeof(float) + wire_bytes + 0.5);
    all.push_back({name + " encode", kPlainSum, bytes, [encode](const Places& at, std::size_t count) { encode(at[0], at[1], count); }});
    all.push_back({name + " decode", kPlainSum, bytes, [decode](const Places& at, std::size_t count) { decode(at[0], at[1], count); }});
  };
  add_rounding("bf16", sizeof(ringlet::BFloat16), kernels.cast(DType::f32, DType::bf16), kernels.cast(DType::bf16, DType::f32));
  for (const auto& facts : ringlet::detail::kBlockFormats) {
    const double wire_bytes = static_cast<double>(block_bytes(facts.format)) / static_cast<double>(facts.elements);
    add_rounding(std::string(facts.name), wire_bytes, kernels.encode(facts.format), kernels.decode(facts.format));
    all.push_back({fmt::format("{} feedback", facts.name), kPlainSum, 2 * sizeof(float) + 1,
                   [left = kernels.left_by(facts.format)](const Places& at, std::size_t count) { left(at[0], at[1], at[2], count); }});
  }
  for (DType dtype : {DType::f32, DType::f64}) {
    const ringlet::simd::UpdateCoefficients adamw{
        .rate = 1e-3, .keep = 0.99999, .decay = {0.9, 0.999}, .gain = {0.1, 0.001}, .epsilon = 1e-8};
    all.push_back({fmt::format("{} adamw", name_of(dtype)), kPlainAdamW, kAdamWBytes * size_of(dtype),
                   [adamw, update = kernels.update(dtype, ringlet::simd::UpdateRule::adam)](const Places& at, std::size_t count) {
                     update({at[0], at[1], {at[2], at[3]}}, count, adamw);
                   }});
  }
  return all;
}

void report(const ringlet::simd::Kernels& kernels, const char* place, std::size_t count, std::size_t shift,
            std::vector<Contestant>& contestants, bool json) {
  if (!json) fmt::print("\n{}, {}: {} elements, {} bytes past a page\n", kernels.name(), place, count, shift);
  for (const Contestant& contestant : contestants) {
    const double time = median(contestant.picoseconds);
    const Contestant& plain = contestants[contestant.plain];
    const double ratio = time / median(plain.picoseconds);
    const double gigabytes = 1e3 * static_cast<double>(contestant.element_bytes) / time;
    if (json) {
      const nlohmann::json row{{"target", kernels.name()},
                               {"place", place},
                               {"count", count},
                               {"shift", shift},
                               {"kernel", contestant.name},
                               {"ps_per_element", time},
                               {"gigabytes_per_s", gigabytes},
                               {"plain", plain.name},
                               {"ratio_to_plain", ratio}};
      fmt::print("{}\n", row.dump());
    } else {
      fmt::print("  {:<16}{:9.1f} ps/element{:9.1f} GB/s{:8.2f} x {}\n", contestant.name, time, gigabytes, ratio, plain.name);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times the reduction and update kernels in the caches and in memory");
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
