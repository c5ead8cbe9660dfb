#pragma once

#include <cmath>
#include <ringlet/error.hpp>
#include <string>
#include <utility>

#include "core/base/number_text.hpp"
#include "core/base/refuse.hpp"

namespace ringlet {

/// Checks the options of one optimizer and keeps the first error, which names the optimizer (`owner`) and the option: "Adam", "eps".
class OptionChecks {
 public:
  explicit OptionChecks(std::string owner) : owner_(std::move(owner)) {}

  OptionChecks& require(bool holds, const std::string& name, double value, const char* what) {
    if (!holds && status_.ok())
      status_ = {Errc::invalid_argument, owner_ + ": " + name + " is " + number_text(value) + "; it must be " + what};
    return *this;
  }
  OptionChecks& finite(const std::string& name, double value) { return require(std::isfinite(value), name, value, "finite"); }
  OptionChecks& not_negative(const std::string& name, double value) {
    return require(std::isfinite(value) && value >= 0, name, value, "finite and not negative");
  }
  OptionChecks& positive(const std::string& name, double value) {
    return require(std::isfinite(value) && value > 0, name, value, "finite and above 0");
  }

  const Status& status() const { return status_; }

 private:
  const std::string owner_;
  Status status_;
};

}  // namespace ringlet
