#pragma once

#include <arm_neon.h>

#include "simd/lanes.hpp"

namespace ringlet::simd {
namespace {

/// f16 by the processor's own conversion instructions. They give the same bits as the generic code, except for NaN payloads.
template <>
struct Packet<xsimd::neon64, Float16> {
  using Lanes = xsimd::batch<float, xsimd::neon64>;
  using Type = OneRegister<Lanes>;
  static constexpr std::size_t kCount = Lanes::size;
  static Type load(const std::byte* from) {
    return {Lanes(vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(reinterpret_cast<const std::uint8_t*>(from)))))};
  }
  static void store(std::byte* to, const Type& packet) {
    vst1_u8(reinterpret_cast<std::uint8_t*>(to), vreinterpret_u8_f16(vcvt_f16_f32(packet.lanes)));
  }
  static Type broadcast(float value) { return {Lanes(value)}; }
};

}  // namespace
}  // namespace ringlet::simd
