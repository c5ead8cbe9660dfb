#include <catch2/catch.hpp>
#include <cfenv>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "simd/kernels.hpp"

using ringlet::simd::FloatEnvironment;

namespace {

// The operands are volatile, so that the compiler neither folds nor moves the arithmetic.
bool rounds_to_nearest() {
  volatile float one = 1, little = 0x1p-30f;
  return one + little == 1 && -one - little == -1;
}
bool keeps_subnormals() {
  volatile float smallest_normal = 0x1p-126f, half = 0.5f, subnormal = 0x1p-149f;
  const volatile float result = smallest_normal * half, doubled = subnormal * 2;
  return result != 0 && doubled == 0x1p-148f;
}

#if defined(__SSE2__)
void flush_subnormals(bool on) {
  _MM_SET_FLUSH_ZERO_MODE(on ? _MM_FLUSH_ZERO_ON : _MM_FLUSH_ZERO_OFF);
  _mm_setcsr(on ? _mm_getcsr() | 0x40u : _mm_getcsr() & ~0x40u);
}
#elif defined(__aarch64__)
void flush_subnormals(bool on) {
  const std::uint64_t value = on ? std::uint64_t{1} << 24 : 0;
  asm volatile("msr fpcr, %0" : : "r"(value) : "memory");
}
#else
void flush_subnormals(bool) {}
#endif

}  // namespace

TEST_CASE("a float environment rounds to nearest while it lives, then restores the mode") {
  std::fesetround(FE_UPWARD);
  const bool before = rounds_to_nearest();
  bool inside = false;
  {
    FloatEnvironment environment;
    inside = rounds_to_nearest();
  }
  const bool after = rounds_to_nearest();
  std::fesetround(FE_TONEAREST);
  CHECK_FALSE(before);
  CHECK(inside);
  CHECK_FALSE(after);
}

TEST_CASE("a float environment keeps subnormals while it lives, then restores the mode") {
  flush_subnormals(true);
  const bool before = keeps_subnormals();
  bool inside = false;
  {
    FloatEnvironment environment;
    inside = keeps_subnormals();
  }
  const bool after = keeps_subnormals();
  flush_subnormals(false);
  CHECK(inside);
  CHECK(after == before);
#if defined(__SSE2__) || defined(__aarch64__)
  CHECK_FALSE(before);
#endif
}
