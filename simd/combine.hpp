#pragma once

#include "simd/half.hpp"

// The meaning of each reduction for two elements of each type. The code has no branches and is exact, so every vectorisation gives the same
// result.
namespace ringlet::simd {
namespace {

/// Maps a floating-point number's bits to a signed integer of the same order: -inf < ... < -0 < +0 < ... < +inf.
template <Real T>
inline typename Format<T>::Signed order_key(typename Format<T>::Bits bits) {
  using Signed = typename Format<T>::Signed;
  const Signed value = static_cast<Signed>(bits);
  const Signed sign = static_cast<Signed>(value >> (8 * sizeof(Signed) - 1));
  return static_cast<Signed>(value ^ static_cast<Signed>(magnitude_of<T>(static_cast<typename Format<T>::Bits>(sign))));
}

template <Real T>
inline bool is_nan_bits(typename Format<T>::Bits bits) {
  return magnitude_of<T>(bits) > Format<T>::kInfinity;
}

template <ReduceOp op, class F>
inline F arithmetic(F a, F b) {
  if constexpr (op == ReduceOp::sum)
    return a + b;
  else
    return a * b;
}

template <ReduceOp op, std::unsigned_integral T>
inline T bitwise(T a, T b) {
  if constexpr (op == ReduceOp::bit_and)
    return a & b;
  else if constexpr (op == ReduceOp::bit_or)
    return a | b;
  else
    return a ^ b;
}

template <ReduceOp op>
inline Boolean combine(Boolean a, Boolean b) {
  const bool left = a.byte != 0, right = b.byte != 0;
  constexpr bool kOr = op == ReduceOp::sum || op == ReduceOp::max || op == ReduceOp::bit_or;
  if constexpr (op == ReduceOp::bit_xor)
    return {static_cast<std::uint8_t>(left != right)};
  else
    return {static_cast<std::uint8_t>(kOr ? left || right : left && right)};
}

template <ReduceOp op, std::integral T>
inline T combine(T a, T b) {
  // Wide is unsigned and at least as wide as int, so that nothing overflows, not even after integer promotion.
  using Wide = std::make_unsigned_t<decltype(T{} + 0)>;
  if constexpr (op == ReduceOp::max)
    return a < b ? b : a;
  else if constexpr (op == ReduceOp::min)
    return b < a ? b : a;
  else if constexpr (is_bitwise(op))
    return static_cast<T>(bitwise<op>(static_cast<Wide>(a), static_cast<Wide>(b)));
  else
    return static_cast<T>(arithmetic<op>(static_cast<Wide>(a), static_cast<Wide>(b)));
}

template <ReduceOp op, Real T>
inline T combine(T a, T b) {
  using Bits = typename Format<T>::Bits;
  if constexpr (op == ReduceOp::sum || op == ReduceOp::prod) {
    return narrow<T>(arithmetic<op>(widen(a), widen(b)));
  } else {
    const Bits left = bits_as<Bits>(a), right = bits_as<Bits>(b);
    const bool left_is_less = order_key<T>(left) < order_key<T>(right);
    const Bits chosen = op == ReduceOp::max ? (left_is_less ? right : left) : (left_is_less ? left : right);
    const bool nan = is_nan_bits<T>(left) || is_nan_bits<T>(right);
    return bits_as<T>(nan ? Format<T>::kQuietNan : chosen);
  }
}

template <ReduceOp op, class P>
inline Complex<P> combine(Complex<P> a, Complex<P> b) {
  if constexpr (op == ReduceOp::sum) {
    return {a.real + b.real, a.imag + b.imag};
  } else if constexpr (op == ReduceOp::prod) {
    // The sign is put into the factor, so that both parts are sums: of a difference beside a sum GCC 12 makes one fused instruction of
    // AVX-512, in spite of -ffp-contract=off.
    using Bits = typename Format<P>::Bits;
    const Bits bits = bits_as<Bits>(b.imag);
    const P minus_imag = bits_as<P>(static_cast<Bits>(bits ^ static_cast<Bits>(~magnitude_of<P>(static_cast<Bits>(~Bits{0})))));
    return {a.real * b.real + a.imag * minus_imag, a.real * b.imag + a.imag * b.real};
  } else {
    using Bits = typename Format<P>::Bits;
    const Bits left[2] = {bits_as<Bits>(a.real), bits_as<Bits>(a.imag)};
    const Bits right[2] = {bits_as<Bits>(b.real), bits_as<Bits>(b.imag)};
    const bool real_less = order_key<P>(left[0]) < order_key<P>(right[0]);
    const bool imag_less = order_key<P>(left[1]) < order_key<P>(right[1]);
    const bool left_is_less = real_less || (left[0] == right[0] && imag_less);
    const bool take_right = left_is_less == (op == ReduceOp::max);
    const bool nan = is_nan_bits<P>(left[0]) || is_nan_bits<P>(left[1]) || is_nan_bits<P>(right[0]) || is_nan_bits<P>(right[1]);
    const Bits real = take_right ? right[0] : left[0];
    const Bits imag = take_right ? right[1] : left[1];
    return {bits_as<P>(nan ? Format<P>::kQuietNan : real), bits_as<P>(nan ? Format<P>::kQuietNan : imag)};
  }
}

}  // namespace
}  // namespace ringlet::simd
