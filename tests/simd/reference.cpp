#include "tests/simd/reference.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace ringlet::test {
namespace {

struct BinaryFormat {
  int fraction_bits;
  int exponent_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
constexpr BinaryFormat kF16{10, 5}, kBf16{7, 8};

double decode_bits(unsigned bits, BinaryFormat format) {
  const double sign = (bits & 0x8000u) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> format.fraction_bits) & ((1 << format.exponent_bits) - 1);
  const int fraction = static_cast<int>(bits) & ((1 << format.fraction_bits) - 1);
  if (exponent == (1 << format.exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - format.bias() - format.fraction_bits);
  return sign * std::ldexp(fraction + (1 << format.fraction_bits), exponent - format.bias() - format.fraction_bits);
}

std::uint16_t encode_bits(double value, BinaryFormat format) {
  const unsigned sign = std::signbit(value) ? 0x8000u : 0;
  const unsigned infinity = ((1u << format.exponent_bits) - 1) << format.fraction_bits;
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | 1);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  const double magnitude = std::fabs(value);
  const int smallest = 1 - format.bias();
  const int exponent = magnitude == 0 ? smallest : std::max(std::ilogb(magnitude), smallest);
  if (exponent > format.bias()) return static_cast<std::uint16_t>(sign | infinity);
  // In units of the last place scaling is exact, so the only rounding is that to an integer.
  const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, format.fraction_bits - exponent)));
  const auto binade = static_cast<unsigned>(exponent - smallest) << format.fraction_bits;
  return static_cast<std::uint16_t>(sign | (binade + units));
}

template <class Visit>
void with_type(DType dtype, Visit visit) {
  const auto each = [&]<class... T>(const std::tuple<ringlet::detail::DTypeRow<T>...>&) {
    ((dtype == dtype_of<T> ? visit(T{}) : void()), ...);
  };
  each(ringlet::detail::kDTypeRows);
}

template <class F>
F combine_floats(ReduceOp op, F a, F b) {
  if (op == ReduceOp::sum) return a + b;
  if (op == ReduceOp::prod) return a * b;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<F>::quiet_NaN();
  const bool a_is_less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
  return a_is_less == (op == ReduceOp::max) ? b : a;
}

template <class F>
bool ordered_before(F a, F b) {
  return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}

template <class F>
std::complex<F> combine(ReduceOp op, std::complex<F> a, std::complex<F> b) {
  if (op == ReduceOp::sum) return {a.real() + b.real(), a.imag() + b.imag()};
  if (op == ReduceOp::prod) {
    // Every product and difference is rounded on its own; volatile keeps the compiler from fusing them.
    volatile F ac = a.real() * b.real(), bd = a.imag() * b.imag(), ad = a.real() * b.imag(), bc = a.imag() * b.real();
    return {ac - bd, ad + bc};
  }
  const F nan = std::numeric_limits<F>::quiet_NaN();
  if (std::isnan(a.real()) || std::isnan(a.imag()) || std::isnan(b.real()) || std::isnan(b.imag())) return {nan, nan};
  const bool a_is_less = ordered_before(a.real(), b.real()) || (!ordered_before(b.real(), a.real()) && ordered_before(a.imag(), b.imag()));
  return a_is_less == (op == ReduceOp::max) ? b : a;
}

Float16 combine(ReduceOp op, Float16 a, Float16 b) {
  return encode_f16(combine_floats(op, static_cast<float>(decode(a)), static_cast<float>(decode(b))));
}
BFloat16 combine(ReduceOp op, BFloat16 a, BFloat16 b) {
  return encode_bf16(combine_floats(op, static_cast<float>(decode(a)), static_cast<float>(decode(b))));
}
float combine(ReduceOp op, float a, float b) { return combine_floats(op, a, b); }
double combine(ReduceOp op, double a, double b) { return combine_floats(op, a, b); }

template <class T>
std::enable_if_t<std::is_integral_v<T>, T> combine(ReduceOp op, T a, T b) {
  if (op == ReduceOp::max) return std::max(a, b);
  if (op == ReduceOp::min) return std::min(a, b);
  const auto left = static_cast<std::uint64_t>(a), right = static_cast<std::uint64_t>(b);
  if (op == ReduceOp::bit_and) return static_cast<T>(left & right);
  if (op == ReduceOp::bit_or) return static_cast<T>(left | right);
  if (op == ReduceOp::bit_xor) return static_cast<T>(left ^ right);
  return static_cast<T>(op == ReduceOp::sum ? left + right : left * right);
}

double as_double(Float16 value) { return decode(value); }
double as_double(BFloat16 value) { return decode(value); }
double as_double(float value) { return static_cast<double>(value); }
double as_double(double value) { return value; }

void put_double(Bytes& out, std::size_t i, DType dtype, double value) {
  if (dtype == DType::f16)
    set_element(out, i, encode_f16(value));
  else if (dtype == DType::bf16)
    set_element(out, i, encode_bf16(value));
  else if (dtype == DType::f32)
    set_element(out, i, static_cast<float>(value));
  else
    set_element(out, i, value);
}

/// Returns all real parts as f64.
std::vector<double> reals(DType dtype, const Bytes& data) {
  std::vector<double> values;
  with_type(part_dtype(dtype), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
      for (std::size_t i = 0; i < data.size() / sizeof(T); ++i) values.push_back(as_double(element<T>(data, i)));
    } else {
      throw std::logic_error("no floating-point dtype");
    }
  });
  return values;
}

}  // namespace

double decode(Float16 value) { return decode_bits(value.bits, kF16); }
double decode(BFloat16 value) { return decode_bits(value.bits, kBf16); }
Float16 encode_f16(double value) { return {encode_bits(value, kF16)}; }
BFloat16 encode_bf16(double value) { return {encode_bits(value, kBf16)}; }

Bytes reference_reduce(DType dtype, ReduceOp op, const Bytes& a, const Bytes& b) {
  Bytes out(a.size());
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < a.size() / sizeof(T); ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        const bool left = a[i] != std::byte{0}, right = b[i] != std::byte{0};
        const bool either = op == ReduceOp::sum || op == ReduceOp::max || op == ReduceOp::bit_or;
        out[i] = static_cast<std::byte>(op == ReduceOp::bit_xor ? left != right : either ? left || right : left && right);
      } else {
        set_element(out, i, combine(op, element<T>(a, i), element<T>(b, i)));
      }
    }
  });
  return out;
}

Bytes reference_scale(DType dtype, bool divide, const Bytes& data, double factor) {
  Bytes out(data.size());
  const DType real = part_dtype(dtype);
  const std::vector<double> values = reals(dtype, data);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto single = static_cast<float>(values[i]), single_factor = static_cast<float>(factor);
    if (real == DType::f64)
      put_double(out, i, real, divide ? values[i] / factor : values[i] * factor);
    else
      put_double(out, i, real, static_cast<double>(divide ? single / single_factor : single * single_factor));
  }
  return out;
}

Bytes reference_cast(DType from, DType to, const Bytes& data) {
  const std::vector<double> values = reals(from, data);
  Bytes out(values.size() * size_of(to));
  for (std::size_t i = 0; i < values.size(); ++i) put_double(out, i, to, values[i]);
  return out;
}

double reference_sum_of_squares(DType dtype, const Bytes& data) {
  const std::vector<double> values = reals(dtype, data);
  double partial[16] = {};
  for (std::size_t i = 0; i < values.size(); ++i) {
    volatile double square = values[i] * values[i];
    partial[i % 16] += square;
  }
  const auto tree = [&](auto self, std::size_t first, std::size_t stride) -> double {
    return stride == 16 ? partial[first] : self(self, first, 2 * stride) + self(self, first + stride, 2 * stride);
  };
  return tree(tree, 0, 1);
}

double reference_abs_max(DType dtype, const Bytes& data) {
  double largest = 0;
  for (double value : reals(dtype, data)) {
    if (std::isnan(value)) return value;
    largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

}  // namespace ringlet::test
