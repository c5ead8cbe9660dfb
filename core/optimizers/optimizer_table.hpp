#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <ringlet/optimizers.hpp>
#include <string_view>
#include <tuple>
#include <type_traits>

// All optimizers with their options. Checks, readers and lists of optimizers, here and in other languages, are derived from these rows; the
// formulas are in formulas.cpp.
namespace ringlet {

/// The numbers that an option may have; they must be finite in any case.
enum class OptionBound {
  any,           // no bound, for a switch
  not_negative,  // 0 or above
  positive,      // above 0
  fraction,      // at least 0 and below 1
  share,         // at least 0 and at most 1
};

template <class Options, class Value>
struct OptionRow {
  std::string_view name;
  Value Options::* value;
  OptionBound bound;
  std::string_view text;  // text for other languages' declarations, besides the default
};

template <class OptimizerClass, class OptionsStruct, class... Values>
struct OptimizerRow {
  using Optimizer = OptimizerClass;
  using Options = OptionsStruct;
  std::string_view name;  // name of the class
  std::tuple<OptionRow<Options, Values>...> options;
};

namespace detail {

/// Converts to every type that an option can have.
struct AnyOption {
  operator double() const;
  operator bool() const;
  operator std::array<double, 2>() const;
};

/// Whether the struct has exactly one member for each of `Any`, followed by `state_dtype`.
template <class Options, class... Any>
inline constexpr bool has_members = requires { Options{Any{}..., std::optional<DType>{}}; } && !requires {
  Options{Any{}..., AnyOption{}, std::optional<DType>{}};
} && !requires { Options{Any{}..., std::optional<DType>{}, AnyOption{}}; };

template <class Options, class Value>
constexpr OptionRow<Options, Value> option(std::string_view name, Value Options::* value, OptionBound bound, std::string_view text = {}) {
  return {name, value, bound, text};
}

template <class Optimizer, class Options, class... Values>
constexpr OptimizerRow<Optimizer, Options, Values...> optimizer(std::string_view name, OptionRow<Options, Values>... options) {
  static_assert(has_members<Options, std::conditional_t<true, AnyOption, Values>...>, "a row lacks an option of its optimizer");
  return {name, {options...}};
}

}  // namespace detail

inline constexpr std::tuple kOptimizers{
    detail::optimizer<SGD>("SGD", detail::option("momentum", &SGDOptions::momentum, OptionBound::not_negative),
                           detail::option("weight_decay", &SGDOptions::weight_decay, OptionBound::not_negative),
                           detail::option("dampening", &SGDOptions::dampening, OptionBound::share),
                           detail::option("nesterov", &SGDOptions::nesterov, OptionBound::any, "needs momentum, and no dampening")),
    detail::optimizer<RMSprop>("RMSprop", detail::option("alpha", &RMSpropOptions::alpha, OptionBound::fraction),
                               detail::option("eps", &RMSpropOptions::eps, OptionBound::positive)),
    detail::optimizer<Adagrad>("Adagrad", detail::option("eps", &AdagradOptions::eps, OptionBound::positive)),
    detail::optimizer<AdaDelta>("AdaDelta", detail::option("rho", &AdaDeltaOptions::rho, OptionBound::fraction),
                                detail::option("eps", &AdaDeltaOptions::eps, OptionBound::positive)),
    detail::optimizer<Adam>("Adam", detail::option("betas", &AdamOptions::betas, OptionBound::fraction),
                            detail::option("eps", &AdamOptions::eps, OptionBound::positive),
                            detail::option("bias_correction", &AdamOptions::bias_correction, OptionBound::any, "PyTorch always corrects")),
    detail::optimizer<AdamW>(
        "AdamW", detail::option("betas", &AdamWOptions::betas, OptionBound::fraction),
        detail::option("eps", &AdamWOptions::eps, OptionBound::positive),
        detail::option("weight_decay", &AdamWOptions::weight_decay, OptionBound::not_negative),
        detail::option("bias_correction", &AdamWOptions::bias_correction, OptionBound::any, "PyTorch always corrects")),
    detail::optimizer<Adamax>("Adamax", detail::option("betas", &AdamaxOptions::betas, OptionBound::fraction),
                              detail::option("eps", &AdamaxOptions::eps, OptionBound::positive)),
    detail::optimizer<Lion>("Lion", detail::option("betas", &LionOptions::betas, OptionBound::fraction),
                            detail::option("weight_decay", &LionOptions::weight_decay, OptionBound::not_negative)),
};

/// Calls `visit` with each row, in the table's order.
template <class Visit>
constexpr void for_each_optimizer(Visit visit) {
  std::apply([&](const auto&... row) { (visit(row), ...); }, kOptimizers);
}

/// Calls `visit` with each of the row's options, in the order of the struct's members.
template <class Row, class Visit>
constexpr void for_each_option(const Row& row, Visit visit) {
  std::apply([&](const auto&... option) { (visit(option), ...); }, row.options);
}

namespace detail {

template <class Options, class... Rows>
constexpr std::size_t place_of_row(const std::tuple<Rows...>&) {
  std::size_t place = 0;
  (void)((std::is_same_v<Options, typename Rows::Options> || (++place, false)) || ...);
  return place;
}

}  // namespace detail

/// The row of the optimizer that has these options.
template <class Options>
constexpr const auto& optimizer_row() {
  constexpr std::size_t kPlace = detail::place_of_row<Options>(kOptimizers);
  static_assert(kPlace < std::tuple_size_v<std::remove_const_t<decltype(kOptimizers)>>, "an optimizer lacks its row in kOptimizers");
  return std::get<kPlace>(kOptimizers);
}

}  // namespace ringlet
