#pragma once

#include <cmath>
#include <ringlet/error.hpp>
#include <string>

#include "core/base/number_text.hpp"

namespace ringlet {

[[noreturn]] inline void refuse(std::string text) { throw InvalidArgument({Errc::invalid_argument, std::move(text)}); }

/// `owner` and `name` say whose option it is: "Adam", "eps".
inline void require(bool holds, const std::string& owner, const std::string& name, double value, const char* what) {
  if (!holds) refuse(owner + ": " + name + " is " + number_text(value) + "; it must be " + what);
}
inline void require_finite(const std::string& owner, const std::string& name, double value) {
  require(std::isfinite(value), owner, name, value, "finite");
}
inline void require_not_negative(const std::string& owner, const std::string& name, double value) {
  require(std::isfinite(value) && value >= 0, owner, name, value, "finite and not negative");
}
inline void require_positive(const std::string& owner, const std::string& name, double value) {
  require(std::isfinite(value) && value > 0, owner, name, value, "finite and above 0");
}
/// A share of what was before.
inline void require_fraction(const std::string& owner, const std::string& name, double value) {
  require(value >= 0 && value < 1, owner, name, value, "at least 0 and below 1");
}

}  // namespace ringlet
