#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "errors.hpp"

// Functions that say which of their arguments is wrong, by name: nanobind itself tells the types of all.
namespace ringlet::python {

namespace nb = nanobind;

/// What an argument of this type may be, for the text of an error. Arguments of types without it are left to nanobind.
template <class T>
struct Kind;
template <class T>
concept HasKind = requires {
  { Kind<T>::text() } -> std::same_as<std::string>;
};

template <>
struct Kind<bool> {
  static std::string text() { return "True or False"; }
};
template <std::integral T>
struct Kind<T> {
  static std::string text() { return "an int"; }
};
template <std::floating_point T>
struct Kind<T> {
  static std::string text() { return "a number"; }
};
template <class T>
  requires std::same_as<T, std::string> || std::same_as<T, std::string_view>
struct Kind<T> {
  static std::string text() { return "a str"; }
};
template <>
struct Kind<nb::callable> {
  static std::string text() { return "a function"; }
};
template <class T>
struct Kind<std::vector<T>> {
  static std::string text() { return std::integral<T> ? "a list of ints" : "a list of numbers"; }
};
template <HasKind T>
struct Kind<std::optional<T>> {
  static std::string text() { return Kind<T>::text() + " or None"; }
};
/// Classes of the binding.
template <class T>
  requires nb::detail::is_base_caster_v<nb::detail::make_caster<T>>
struct Kind<T> {
  static std::string text() { return "a ringlet." + nb::cast<std::string>(nb::type<T>().attr("__name__")); }
};

/// Whether an int that does not fit is out of range.
template <class T>
inline constexpr bool kIsInteger = std::integral<T> && !std::same_as<T, bool>;
template <class T>
inline constexpr bool kIsInteger<std::optional<T>> = kIsInteger<T>;

/// An argument that was given, whether it fits or not.
template <class T>
class Given {
 public:
  using Caster = nb::detail::make_caster<T>;

  /// `caster` is null where the value does not fit.
  Given(nb::handle value, Caster* caster) : value_(value), caster_(caster) {}

  /// The value for the function. Where it does not fit, throws what names the argument: `InvalidArgument` for an int that is out of range,
  /// else a `TypeError`.
  nb::detail::cast_t<T> take(const char* name) const {
    if (caster_ == nullptr) refuse_value(name);
    return caster_->operator nb::detail::cast_t<T>();
  }

 private:
  [[noreturn]] void refuse_value(const char* name) const {
    using Plain = std::remove_cvref_t<T>;
    const std::string text = std::string(name) + " is " + shown(value_);
    if (kIsInteger<Plain> && PyIndex_Check(value_.ptr())) refuse(text + ", which is out of range");
    throw nb::type_error((text + "; it is " + Kind<Plain>::text()).c_str());
  }

  nb::handle value_;
  Caster* caster_;
};

template <class T>
decltype(auto) taken(Given<T>&& given, const char* name) {
  return given.take(name);
}
template <class T>
T&& taken(T&& value, const char*) {
  return std::forward<T>(value);
}

/// What stands in a bound function for an argument of type T.
template <class T>
using Argument = std::conditional_t<HasKind<std::remove_cvref_t<T>>, Given<T>, T>;

/// The same function, which looks at its arguments. The first one has no name where it is the object of a method.
template <class Function, class R, class... A, std::size_t kNames, std::size_t... I>
auto looking_at_arguments(Function function, std::function<R(A...)>*, const std::array<const char*, kNames>& names,
                          std::index_sequence<I...>) {
  constexpr std::size_t kUnnamed = sizeof...(A) - kNames;
  return [function = std::move(function), names](std::conditional_t<(I < kUnnamed), A, Argument<A>>... arguments) -> R {
    return function(taken(static_cast<decltype(arguments)&&>(arguments), I < kUnnamed ? nullptr : names[I - kUnnamed])...);
  };
}

template <class Function, std::size_t kNames>
auto looking_at_arguments(Function function, const std::array<const char*, kNames>& names) {
  using Signature = decltype(std::function(function));
  const auto of_arity = []<class R, class... A>(std::function<R(A...)>*) { return std::index_sequence_for<A...>(); };
  return looking_at_arguments(std::move(function), static_cast<Signature*>(nullptr), names, of_arity(static_cast<Signature*>(nullptr)));
}

template <class Extra>
inline constexpr bool kIsArgument = nb::detail::arg_traits<Extra>::is_arg;

template <class... Extra>
auto names_of(const Extra&... extra) {
  std::array<const char*, (std::size_t{kIsArgument<Extra>} + ... + 0)> names{};
  std::size_t count = 0;
  const auto add = [&](const auto& one) {
    if constexpr (kIsArgument<std::remove_cvref_t<decltype(one)>>) names[count++] = one.name_;
  };
  (add(extra), ...);
  return names;
}

/// None is refused with the other values that do not fit.
///@{
template <class Extra>
const Extra& passing_none(const Extra& extra) {
  return extra;
}
template <std::uint32_t kFlags, bool kLocked>
auto passing_none(const nb::arg_t<kFlags, kLocked>& argument) {
  return argument.none();
}
template <std::uint32_t kFlags, bool kLocked>
auto passing_none(const nb::arg_v_t<kFlags, kLocked>& argument) {
  constexpr std::uint32_t kPassing = kFlags | nb::detail::cast_flags::accepts_none;
  return nb::arg_v_t<kPassing, kLocked>(argument, nb::object(argument.value));
}
///@}

template <class Extra>
inline constexpr bool kIsGuard = false;
template <class... Guards>
inline constexpr bool kIsGuard<nb::call_guard<Guards...>> = true;

/// Calls `bind` with the function, which looks at its arguments if `extra` names them, and with `extra`.
template <class Function, class... Extra>
void bind_looking(const auto& bind, Function&& function, const Extra&... extra) {
  constexpr bool kHasNames = (kIsArgument<Extra> || ...);
  static_assert(!kHasNames || !(kIsGuard<Extra> || ...), "arguments are looked at with the interpreter's lock; leave it in the function");
  if constexpr (kHasNames)
    bind(looking_at_arguments(std::forward<Function>(function), names_of(extra...)), passing_none(extra)...);
  else
    bind(std::forward<Function>(function), extra...);
}

/// nb::module_::def().
template <class Function, class... Extra>
void define(nb::module_& module, const char* name, Function&& function, const Extra&... extra) {
  bind_looking([&](auto&&... bound) { module.def(name, std::forward<decltype(bound)>(bound)...); }, std::forward<Function>(function),
               extra...);
}

/// nb::class_, whose methods look at their arguments.
template <class T, class... Rest>
class Class : public nb::class_<T, Rest...> {
  using Base = nb::class_<T, Rest...>;

 public:
  using Base::Base;

  template <class Function, class... Extra>
  Class& def(const char* name, Function&& function, const Extra&... extra) {
    Base& base = *this;
    bind_looking([&base, name](auto&&... bound) { base.def(name, std::forward<decltype(bound)>(bound)...); },
                 std::forward<Function>(function), extra...);
    return *this;
  }
  template <class Function, class... Extra>
  Class& def_static(const char* name, Function&& function, const Extra&... extra) {
    Base& base = *this;
    bind_looking([&base, name](auto&&... bound) { base.def_static(name, std::forward<decltype(bound)>(bound)...); },
                 std::forward<Function>(function), extra...);
    return *this;
  }
};

}  // namespace ringlet::python

/// Takes every value at first.
template <class T>
struct nanobind::detail::type_caster<ringlet::python::Given<T>> {
  using Inner = typename ringlet::python::Given<T>::Caster;
  static constexpr auto Name = make_caster<remove_opt_mono_t<intrinsic_t<T>>>::Name;
  template <class>
  using Cast = ringlet::python::Given<T>;

  template <class>
  static constexpr bool can_cast() {
    return true;
  }
  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    value_ = source;
    fits_ = inner_.from_python(source, flags | cast_flags::convert | none_disallowed_flag<T>, cleanup) && inner_.template can_cast<T>();
    return true;
  }
  operator ringlet::python::Given<T>() { return {value_, fits_ ? &inner_ : nullptr}; }

 private:
  Inner inner_;
  handle value_;
  bool fits_ = false;
};
