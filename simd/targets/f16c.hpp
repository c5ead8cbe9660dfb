#pragma once

#include <immintrin.h>

#include "simd/lanes.hpp"

// f16 by the processor's own conversion instructions. They give the same bits as the generic code, except for NaN payloads.
namespace ringlet::simd {
namespace {

template <>
struct Packet<xsimd::avx2, Float16> {
  using Lanes = xsimd::batch<float, xsimd::avx2>;
  using Type = OneRegister<Lanes>;
  static constexpr std::size_t kCount = Lanes::size;
  static Type load(const std::byte* from) { return {Lanes(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))))}; }
  static void store(std::byte* to, const Type& packet) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(packet.lanes, _MM_FROUND_TO_NEAREST_INT));
  }
  static Type broadcast(float value) { return {Lanes(value)}; }
};

#if defined(__AVX512F__)
template <>
struct Packet<xsimd::avx512bw, Float16> {
  using Lanes = xsimd::batch<float, xsimd::avx512bw>;
  using Type = OneRegister<Lanes>;
  static constexpr std::size_t kCount = Lanes::size;
  static Type load(const std::byte* from) { return {Lanes(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))))}; }
  static void store(std::byte* to, const Type& packet) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(packet.lanes, _MM_FROUND_TO_NEAREST_INT));
  }
  static Type broadcast(float value) { return {Lanes(value)}; }
};
#endif

}  // namespace
}  // namespace ringlet::simd
