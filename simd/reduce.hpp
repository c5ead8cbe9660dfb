#pragma once

#include "simd/combine.hpp"
#include "simd/lanes.hpp"

namespace ringlet::simd {
namespace {

/// Packets that one iteration of a loop handles: enough loads are under way to hide their latency.
inline constexpr std::size_t kUnroll = 4;

template <class Arch, class T, ReduceOp op, std::size_t packets>
inline void reduce_packets(std::byte* out, const std::byte* a, const std::byte* b) {
  using P = Packet<Arch, T>;
  constexpr std::size_t kBytes = P::kCount * sizeof(T);
  typename P::Type results[packets];
  for (std::size_t p = 0; p < packets; ++p) {
    const auto combine_lanes = [](const auto& left, const auto& right) { return arithmetic<op>(left, right); };
    results[p] = P::Type::map(combine_lanes, P::load(a + p * kBytes), P::load(b + p * kBytes));
  }
  for (std::size_t p = 0; p < packets; ++p) {
    if constexpr (requires { P::store_combined; })
      P::store_combined(out + p * kBytes, results[p]);
    else
      P::store(out + p * kBytes, results[p]);
  }
}

/// Reduces as many elements as whole packets hold, and returns how many these are.
template <class Arch, class T, ReduceOp op>
inline std::size_t reduce_in_packets(std::byte* out, const std::byte* a, const std::byte* b, std::size_t count) {
  constexpr std::size_t kCount = Packet<Arch, T>::kCount;
  std::size_t i = 0;
  for (; count - i >= kUnroll * kCount; i += kUnroll * kCount) {
    reduce_packets<Arch, T, op, kUnroll>(out + i * sizeof(T), a + i * sizeof(T), b + i * sizeof(T));
  }
  for (; count - i >= kCount; i += kCount) {
    reduce_packets<Arch, T, op, 1>(out + i * sizeof(T), a + i * sizeof(T), b + i * sizeof(T));
  }
  return i;
}

/// Whether speed matters less than the size of the loop: a program that trains adds floats and counts.
template <class T, ReduceOp op>
inline constexpr bool kRarelyReduced = ComplexNumber<T> || std::same_as<T, Boolean> || (std::integral<T> && op != ReduceOp::sum);

template <class Arch, class T, ReduceOp op>
void reduce(std::byte* out, const std::byte* a, const std::byte* b, std::size_t count) {
  constexpr bool kArithmetic = op == ReduceOp::sum || op == ReduceOp::prod;
  if constexpr (ComplexNumber<T> && op == ReduceOp::sum) {
    reduce<Arch, typename T::Part, op>(out, a, b, 2 * count);
  } else if constexpr (std::integral<T> && is_bitwise(op) && !std::same_as<T, std::uint8_t>) {
    // A bit does not depend on its neighbours, so the loop over bytes serves all integers.
    reduce<Arch, std::uint8_t, op>(out, a, b, count * sizeof(T));
  } else if constexpr (kRarelyReduced<T, op>) {
    RINGLET_RARE_LOOP
    for (std::size_t i = 0; i < count; ++i) store(out, i, combine<op>(load<T>(a, i), load<T>(b, i)));
  } else {
    std::size_t i = 0;
    if constexpr (Packed<Arch, T> && kArithmetic) i = reduce_in_packets<Arch, T, op>(out, a, b, count);
    RINGLET_INDEPENDENT_LOOP
    for (std::size_t rest = i; rest < count; ++rest) store(out, rest, combine<op>(load<T>(a, rest), load<T>(b, rest)));
  }
}

}  // namespace
}  // namespace ringlet::simd
