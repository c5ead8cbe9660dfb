#pragma once

#include <string_view>

namespace ringlet {

namespace detail {

/// The compiler's name for this function ends with its argument: "value = ringlet::DType::f32]" or, for a number that the enumeration has
/// no name for, "value = (ringlet::DType)14]".
template <auto value>
constexpr bool has_name() {
  const std::string_view function = __PRETTY_FUNCTION__;
  constexpr std::string_view kBefore = "value = ";
  return function[function.rfind(kBefore) + kBefore.size()] != '(';
}

}  // namespace detail

/// Whether an enumeration has an enumerator of this value. Tables assert that the value after their last row has none.
template <auto value>
inline constexpr bool is_enumerator = detail::has_name<value>();

}  // namespace ringlet
