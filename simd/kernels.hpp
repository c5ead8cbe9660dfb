#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ringlet/dtype.hpp>
#include <ringlet/wire.hpp>
#include <span>
#include <string_view>

namespace ringlet::simd {

/// Computes out[i] = a[i] op b[i]. No alignment is needed. `out` is the same memory as `a` or `b`, or overlaps neither.
using ReduceFn = void (*)(std::byte* out, const std::byte* a, const std::byte* b, std::size_t count);
/// Computes data[i] = data[i] * factor, or data[i] / factor. The factor is first rounded to the dtype's arithmetic type (f32; f64 for f64).
using ScaleFn = void (*)(std::byte* data, std::size_t count, double factor);
/// Converts to another float dtype: out[i] = in[i], rounded to nearest even. The arrays must not overlap.
using CastFn = void (*)(std::byte* out, const std::byte* in, std::size_t count);
/// Folds an array into one number.
using FoldFn = double (*)(const std::byte* data, std::size_t count);
/// Converts f32 to blocks, or back: `count` elements in as many blocks as they need. When encoding, the last block is filled up with zeros.
/// The arrays must not overlap.
using BlocksFn = void (*)(std::byte* out, const std::byte* in, std::size_t count);
/// What encoding `values` (f32) as `blocks` has left out: left[i] = values[i] - decoded[i], and 0 where that is not finite. `left` is the
/// same memory as `values`, or the arrays do not overlap.
using BlocksLeaveFn = void (*)(std::byte* left, const std::byte* values, const std::byte* blocks, std::size_t count);
/// Changes each element in place.
using MapFn = void (*)(std::byte* data, std::size_t count);

/// An optimizer step for a parameter p with the gradient g and its state s, element by element (r: rate, d: decay, k: gain):
/// sgd, momentum, nesterov, with h = g + penalty p:  p -= r h;  s0 = d0 s0 + k0 h, p -= r s0;  the same s0, p -= r (h + d0 s0)
/// root_mean_square:  s0 = d0 s0 + k0 g^2, p -= r g / (sqrt(s0) + epsilon)
/// adadelta:  s0 = d0 s0 + k0 g^2, c = sqrt(s1 + epsilon) / sqrt(s0 + epsilon) g, s1 = d0 s1 + k0 c^2, p -= r c
/// adam:      s0 = d0 s0 + k0 g, s1 = d1 s1 + k1 g^2, p = keep p - r s0 / (correction sqrt(s1) + epsilon)
/// adamax:    s0 = d0 s0 + k0 g, s1 = max(d1 s1, |g|), p -= r s0 / (s1 + epsilon)
/// lion:      c = d0 s0 + k0 g, s0 = d1 s0 + k1 g, p = keep p - r sign(c)
enum class UpdateRule : std::uint8_t { sgd, momentum, nesterov, root_mean_square, adadelta, adam, adamax, lion };

struct UpdateRuleFacts {
  UpdateRule rule;
  std::size_t slots;  // arrays of state
};
/// The number of state arrays of each rule, in the order of the rules.
inline constexpr std::array kUpdateRules{
    UpdateRuleFacts{UpdateRule::sgd, 0},      UpdateRuleFacts{UpdateRule::momentum, 1},
    UpdateRuleFacts{UpdateRule::nesterov, 1}, UpdateRuleFacts{UpdateRule::root_mean_square, 1},
    UpdateRuleFacts{UpdateRule::adadelta, 2}, UpdateRuleFacts{UpdateRule::adam, 2},
    UpdateRuleFacts{UpdateRule::adamax, 2},   UpdateRuleFacts{UpdateRule::lion, 1},
};
static_assert(ringlet::detail::in_order(kUpdateRules, &UpdateRuleFacts::rule));
inline constexpr std::size_t kUpdateRuleCount = kUpdateRules.size();

constexpr std::size_t slots_of(UpdateRule rule) noexcept { return kUpdateRules[static_cast<std::size_t>(rule)].slots; }

/// The coefficients of a step. A rule reads only those that its formula names. Each is rounded to the arithmetic type before it is used.
struct UpdateCoefficients {
  double rate = 0;
  double keep = 1;
  double penalty = 0;
  double decay[2]{};
  double gain[2]{};
  double correction = 1;
  double epsilon = 0;
};

/// Arrays of one dtype that must not overlap. `parameters` and `state` are changed.
struct UpdateArrays {
  std::byte* parameters;
  const std::byte* gradients;
  std::byte* state[2];
};
using UpdateFn = void (*)(const UpdateArrays& arrays, std::size_t count, const UpdateCoefficients& coefficients);

/// Arrays that take several kernels are worked on in pieces of so many elements, whole blocks, so that they stay in the first-level cache.
inline constexpr std::size_t kPieceElements = 1024;

struct Table;

/// The kernels of one instruction set. Every target gives the same bits for the same input, except that the payload of a NaN result may
/// differ. All kernels are pure functions, which any thread may call.
class Kernels {
 public:
  Kernels(std::string_view name, const Table& table) noexcept : name_(name), table_(&table) {}

  /// Returns "scalar", "sse4.1", "avx2", "avx512", "neon64" or "wasm".
  std::string_view name() const noexcept { return name_; }
  /// Exists for every dtype and operation that can_reduce() says yes to; null for the others.
  ReduceFn reduce(DType dtype, ReduceOp op) const noexcept;
  /// For f16, bf16, f32, f64 and complex dtypes (both parts); null for the others.
  ScaleFn multiply(DType dtype) const noexcept;
  ScaleFn divide(DType dtype) const noexcept;
  /// For any two of f16, bf16, f32 and f64 (equal ones: copies); null for the others.
  CastFn cast(DType from, DType to) const noexcept;
  /// Sum of squares, accumulated in f64 over a fixed virtual width, so that all targets agree. For floating dtypes, else null.
  FoldFn sum_of_squares(DType dtype) const noexcept;
  /// Largest absolute value: NaN if any element is NaN, 0 for no elements. For f16, bf16, f32 and f64, else null.
  FoldFn abs_max(DType dtype) const noexcept;
  /// Replaces every NaN by the positive quiet NaN without payload (0x7fc00000 in f32). For floating dtypes, else null.
  MapFn canonical_nan(DType dtype) const noexcept;
  /// For every block format; the bytes are the same on all targets.
  BlocksFn encode(BlockFormat format) const noexcept;
  BlocksFn decode(BlockFormat format) const noexcept;
  BlocksLeaveFn left_by(BlockFormat format) const noexcept;
  /// For f32 and f64; null for the others. It uses only operations with exact rounding, and fuses none of them.
  UpdateFn update(DType dtype, UpdateRule rule) const noexcept;

 private:
  std::string_view name_;
  const Table* table_;
};

/// Returns the targets that this CPU can run, slowest first. The list is never empty; the first is scalar.
std::span<const Kernels* const> available() noexcept;

/// Returns the target of that name if this CPU can run it, else null. An empty name stands for the fastest target.
const Kernels* find(std::string_view name) noexcept;

/// While it exists, this thread rounds to nearest, without flush-to-zero and denormals-are-zero; the destructor restores the former state.
class FloatEnvironment {
 public:
  FloatEnvironment() noexcept;
  ~FloatEnvironment();
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  std::uint64_t saved_;
};

}  // namespace ringlet::simd
