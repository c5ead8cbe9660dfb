#pragma once

#include <xsimd/xsimd.hpp>

#include "simd/half.hpp"

namespace ringlet::simd {
namespace {

/// The target without explicit vector instructions: plain loops for the instruction set that the compiler builds for.
struct Scalar {};

template <class Arch>
concept Vector = !std::same_as<Arch, Scalar>;

/// A packet of consecutive elements in one register.
template <class L>
struct OneRegister {
  L lanes;
  template <class F>
  static OneRegister map(F function, const OneRegister& a, const OneRegister& b) {
    return {function(a.lanes, b.lanes)};
  }
};

/// A packet of consecutive 16-bit elements, widened to two registers: those of even and those of odd index. Read as 32-bit words, both are
/// extracted by shifting and masking.
template <class L>
struct EvenOdd {
  L even;
  L odd;
  template <class F>
  static EvenOdd map(F function, const EvenOdd& a, const EvenOdd& b) {
    return {function(a.even, b.even), function(a.odd, b.odd)};
  }
};

/// How an instruction set holds elements of T for computing: `Type`, the number `kCount` of elements in it, and load and store (any
/// alignment). It is not defined for combinations where a plain loop is as fast.
template <class Arch, class T>
struct Packet;

template <Vector Arch, std::floating_point T>
struct Packet<Arch, T> {
  using Lanes = xsimd::batch<T, Arch>;
  using Type = OneRegister<Lanes>;
  static constexpr std::size_t kCount = Lanes::size;
  static Type load(const std::byte* from) { return {Lanes::load_unaligned(reinterpret_cast<const T*>(from))}; }
  static void store(std::byte* to, const Type& packet) { packet.lanes.store_unaligned(reinterpret_cast<T*>(to)); }
  static Type broadcast(T value) { return {Lanes(value)}; }
};

template <Vector Arch>
struct Packet<Arch, BFloat16> {
  using Lanes = xsimd::batch<float, Arch>;
  using Words = xsimd::batch<std::uint32_t, Arch>;
  using Half = HalfBits<Lanes, xsimd::batch<std::int32_t, Arch>, Words>;
  using Type = EvenOdd<Lanes>;
  static constexpr std::size_t kCount = 2 * Lanes::size;
  static Type load(const std::byte* from) {
    const Words words = Words::load_unaligned(reinterpret_cast<const std::uint32_t*>(from));
    return {Half::widen_bf16(words), xsimd::bitwise_cast<Lanes>(words & Words(0xffff'0000u))};
  }
  static void store(std::byte* to, const Type& packet) { join(to, Half::round_bf16(packet.even), Half::round_bf16(packet.odd)); }
  /// For results of arithmetic on widened elements only. A NaN among them has the payload of an operand, whose lower half was zero, or the
  /// processor's own payload. So rounding cannot carry, and the test for NaN, a quarter of the kernel's time, is not needed.
  static void store_combined(std::byte* to, const Type& packet) {
    join(to, Half::round_bf16_number(packet.even), Half::round_bf16_number(packet.odd));
  }
  static Type broadcast(float value) { return {Lanes(value), Lanes(value)}; }

 private:
  static void join(std::byte* to, const Words& even, const Words& odd) {
    const Words words = (even >> 16) | (odd & Words(0xffff'0000u));
    words.store_unaligned(reinterpret_cast<std::uint32_t*>(to));
  }
};

/// Instruction sets with conversion instructions of their own specialise this template.
template <Vector Arch>
struct Packet<Arch, Float16> {
  using Lanes = xsimd::batch<float, Arch>;
  using Words = xsimd::batch<std::int32_t, Arch>;
  using Half = HalfBits<Lanes, Words, xsimd::batch<std::uint32_t, Arch>>;
  using Type = EvenOdd<Lanes>;
  static constexpr std::size_t kCount = 2 * Lanes::size;
  static Type load(const std::byte* from) {
    const Words words = Words::load_unaligned(reinterpret_cast<const std::int32_t*>(from));
    return {Half::widen_f16(words), Half::widen_f16(words >> 16)};
  }
  static void store(std::byte* to, const Type& packet) {
    const Words words = Half::narrow_f16(packet.even) | (Half::narrow_f16(packet.odd) << 16);
    words.store_unaligned(reinterpret_cast<std::int32_t*>(to));
  }
  static Type broadcast(float value) { return {Lanes(value), Lanes(value)}; }
};

template <class Arch, class T>
concept Packed = requires { Packet<Arch, T>::kCount; };

}  // namespace
}  // namespace ringlet::simd
