#pragma once

#include "simd/kernels.hpp"
#include "simd/lanes.hpp"

// The steps of the optimizers: one pass over parameters, gradients and state. All targets use plain loops: the compiler vectorises division
// and square root with the processor's exact rounding, but xsimd's are approximations on some targets.
namespace ringlet::simd {
namespace {

inline float square_root(float value) { return __builtin_sqrtf(value); }
inline double square_root(double value) { return __builtin_sqrt(value); }
inline float magnitude(float value) { return __builtin_fabsf(value); }
inline double magnitude(double value) { return __builtin_fabs(value); }
/// Returns 1 with the sign of `value`.
inline float unit(float value) { return __builtin_copysignf(1.0F, value); }
inline double unit(double value) { return __builtin_copysign(1.0, value); }

/// The coefficients, rounded once to the type in which the step is computed.
template <std::floating_point F>
struct Coefficients {
  explicit Coefficients(const UpdateCoefficients& given)
      : rate(static_cast<F>(given.rate)),
        keep(static_cast<F>(given.keep)),
        penalty(static_cast<F>(given.penalty)),
        decay{static_cast<F>(given.decay[0]), static_cast<F>(given.decay[1])},
        gain{static_cast<F>(given.gain[0]), static_cast<F>(given.gain[1])},
        correction(static_cast<F>(given.correction)),
        epsilon(static_cast<F>(given.epsilon)) {}

  F rate, keep, penalty, decay[2], gain[2], correction, epsilon;
};

/// Computes one element: returns the new parameter, and changes the slots to the new state.
template <UpdateRule rule, class F>
inline F updated(F parameter, F gradient, F (&slot)[2], const Coefficients<F>& c) {
  if constexpr (rule == UpdateRule::sgd || rule == UpdateRule::momentum || rule == UpdateRule::nesterov) {
    // With no penalty its term is left out instead of adding 0, because 0 times an infinite parameter would be NaN.
    const F slope = c.penalty != F(0) ? gradient + c.penalty * parameter : gradient;
    if constexpr (rule == UpdateRule::sgd) return parameter - c.rate * slope;
    slot[0] = c.decay[0] * slot[0] + c.gain[0] * slope;
    if constexpr (rule == UpdateRule::nesterov) return parameter - c.rate * (slope + c.decay[0] * slot[0]);
    return parameter - c.rate * slot[0];
  } else if constexpr (rule == UpdateRule::root_mean_square) {
    slot[0] = c.decay[0] * slot[0] + c.gain[0] * (gradient * gradient);
    return parameter - c.rate * gradient / (square_root(slot[0]) + c.epsilon);
  } else if constexpr (rule == UpdateRule::adadelta) {
    slot[0] = c.decay[0] * slot[0] + c.gain[0] * (gradient * gradient);
    const F change = square_root(slot[1] + c.epsilon) / square_root(slot[0] + c.epsilon) * gradient;
    slot[1] = c.decay[0] * slot[1] + c.gain[0] * (change * change);
    return parameter - c.rate * change;
  } else if constexpr (rule == UpdateRule::adam) {
    slot[0] = c.decay[0] * slot[0] + c.gain[0] * gradient;
    slot[1] = c.decay[1] * slot[1] + c.gain[1] * (gradient * gradient);
    return c.keep * parameter - c.rate * slot[0] / (square_root(slot[1]) * c.correction + c.epsilon);
  } else if constexpr (rule == UpdateRule::adamax) {
    slot[0] = c.decay[0] * slot[0] + c.gain[0] * gradient;
    const F faded = c.decay[1] * slot[1], size = magnitude(gradient);
    // A NaN on either side stays. Both comparisons are always made, because loops with branches are not vectorised.
    const bool take_faded = (faded > size) | (faded != faded);
    slot[1] = take_faded ? faded : size;
    return parameter - c.rate * slot[0] / (slot[1] + c.epsilon);
  } else {
    static_assert(rule == UpdateRule::lion);
    const F direction = c.decay[0] * slot[0] + c.gain[0] * gradient;
    slot[0] = c.decay[1] * slot[0] + c.gain[1] * gradient;
    // The sign of a NaN is NaN, and the sign of a zero is that zero.
    const F sign = magnitude(direction) > F(0) ? unit(direction) : direction;
    return c.keep * parameter - c.rate * sign;
  }
}

template <class Arch, std::floating_point F, UpdateRule rule>
void update(const UpdateArrays& arrays, std::size_t count, const UpdateCoefficients& given) {
  constexpr std::size_t kSlots = slots_of(rule);
  const Coefficients<F> coefficients(given);
  std::byte* const parameters = arrays.parameters;
  const std::byte* const gradients = arrays.gradients;
  std::byte* const first = arrays.state[0];
  std::byte* const second = arrays.state[1];
  RINGLET_INDEPENDENT_LOOP
  for (std::size_t i = 0; i < count; ++i) {
    F slot[2]{};
    if constexpr (kSlots > 0) slot[0] = load<F>(first, i);
    if constexpr (kSlots > 1) slot[1] = load<F>(second, i);
    store(parameters, i, updated<rule>(load<F>(parameters, i), load<F>(gradients, i), slot, coefficients));
    if constexpr (kSlots > 0) store(first, i, slot[0]);
    if constexpr (kSlots > 1) store(second, i, slot[1]);
  }
}

}  // namespace
}  // namespace ringlet::simd
