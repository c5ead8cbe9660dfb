#include <cpuid.h>
#include <xmmintrin.h>

#include "simd/target_list.hpp"

namespace ringlet::simd {
namespace {

// __builtin_cpu_supports() also asks whether the operating system saves the registers.
bool always() noexcept { return true; }
bool has_sse4_1() noexcept { return __builtin_cpu_supports("sse4.1"); }
bool has_avx2() noexcept {
  // Not every compiler's built-in test knows F16C by name. F16C needs the same support of the operating system as AVX2.
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
bool has_avx512() noexcept {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

constexpr Target kTargets[] = {{"scalar", &kScalarTable, always},
                               {"sse4.1", &kSse41Table, has_sse4_1},
                               {"avx2", &kAvx2Table, has_avx2},
                               {"avx512", &kAvx512Table, has_avx512}};

constexpr unsigned kDenormalsAreZero = 1u << 6;
constexpr unsigned kRounding = 3u << 13;  // 0: to nearest
constexpr unsigned kFlushToZero = 1u << 15;

}  // namespace

std::span<const Target> target_list() noexcept { return kTargets; }

FloatEnvironment::FloatEnvironment() noexcept : saved_(_mm_getcsr()) {
  _mm_setcsr(static_cast<unsigned>(saved_) & ~(kDenormalsAreZero | kRounding | kFlushToZero));
}
FloatEnvironment::~FloatEnvironment() { _mm_setcsr(static_cast<unsigned>(saved_)); }

}  // namespace ringlet::simd
