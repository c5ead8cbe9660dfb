#pragma once

#include "simd/combine.hpp"
#include "simd/lanes.hpp"

// Kernels with one input: scaling, casts, canonical NaNs.
namespace ringlet::simd {
namespace {

enum class Scaling { multiply, divide };

template <Scaling scaling, class F>
inline F scale_one(F value, F factor) {
  if constexpr (scaling == Scaling::multiply)
    return value * factor;
  else
    return value / factor;
}

template <class Arch, class T>
inline std::size_t multiply_in_packets(std::byte* data, std::size_t count, typename Format<T>::Arithmetic factor) {
  using P = Packet<Arch, T>;
  const auto factors = P::broadcast(factor);
  const auto multiply = [](const auto& lanes, const auto& by) { return lanes * by; };
  std::size_t i = 0;
  for (; count - i >= P::kCount; i += P::kCount) {
    P::store(data + i * sizeof(T), P::Type::map(multiply, P::load(data + i * sizeof(T)), factors));
  }
  return i;
}

template <class Arch, Floating T, Scaling scaling>
void scale(std::byte* data, std::size_t count, double factor) {
  if constexpr (ComplexNumber<T>) {
    scale<Arch, typename T::Part, scaling>(data, 2 * count, factor);
  } else {
    const auto rounded = static_cast<typename Format<T>::Arithmetic>(factor);
    std::size_t i = 0;
    // Division is left to the plain loop, because xsimd's division is an approximation on NEON.
    if constexpr (Packed<Arch, T> && scaling == Scaling::multiply) i = multiply_in_packets<Arch, T>(data, count, rounded);
    RINGLET_INDEPENDENT_LOOP
    for (std::size_t rest = i; rest < count; ++rest) store(data, rest, narrow<T>(scale_one<scaling>(widen(load<T>(data, rest)), rounded)));
  }
}

/// Whether both types' packets are one register with the same number of lanes, so that a cast is a load of one type and a store of the
/// other.
template <class Arch, class From, class To>
concept CastsByPacket =
    Packed<Arch, From> && Packed<Arch, To> && std::same_as<typename Packet<Arch, From>::Type, typename Packet<Arch, To>::Type>;

template <class Arch, Real From, Real To>
void cast(std::byte* out, const std::byte* in, std::size_t count) {
  if constexpr (std::same_as<From, To>) {
    if (count != 0) std::memcpy(out, in, count * sizeof(To));
  } else {
    std::size_t i = 0;
    if constexpr (CastsByPacket<Arch, From, To>) {
      constexpr std::size_t kCount = Packet<Arch, From>::kCount;
      for (; count - i >= kCount; i += kCount) {
        Packet<Arch, To>::store(out + i * sizeof(To), Packet<Arch, From>::load(in + i * sizeof(From)));
      }
    }
    RINGLET_INDEPENDENT_LOOP
    for (std::size_t rest = i; rest < count; ++rest) store(out, rest, narrow<To>(widen(load<From>(in, rest))));
  }
}

template <class Arch, Floating T>
void canonical_nan(std::byte* data, std::size_t count) {
  if constexpr (ComplexNumber<T>) {
    canonical_nan<Arch, typename T::Part>(data, 2 * count);
  } else {
    using Bits = typename Format<T>::Bits;
    RINGLET_INDEPENDENT_LOOP
    for (std::size_t i = 0; i < count; ++i) {
      const Bits bits = load<Bits>(data, i);
      store(data, i, is_nan_bits<T>(bits) ? Format<T>::kQuietNan : bits);
    }
  }
}

}  // namespace
}  // namespace ringlet::simd
