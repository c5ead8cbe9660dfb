#pragma once

#include <array>
#include <optional>
#include <ringlet/optimizers.hpp>
#include <ringlet/status.hpp>
#include <string>

#include "core/optimizers/checks.hpp"
#include "core/optimizers/optimizer_table.hpp"

namespace ringlet {

namespace detail {

void check_option(OptionChecks& checks, const std::string& name, double value, OptionBound bound);
void check_option(OptionChecks& checks, const std::string& name, const std::array<double, 2>& values, OptionBound bound);

/// Checks the bounds that concern several options at once.
template <class Options>
void check_together(OptionChecks&, const Options&) {}
void check_together(OptionChecks& checks, const SGDOptions& options);

template <class Options>
Status check_options(const Options& options) {
  constexpr const auto& kRow = optimizer_row<Options>();
  OptionChecks checks{std::string(kRow.name)};
  for_each_option(kRow, [&](const auto& option) { check_option(checks, std::string(option.name), options.*option.value, option.bound); });
  check_together(checks, options);
  return checks.status();
}

/// Checks what all optimizers have in common. `owner` is the optimizer's name.
Status check_optimizer(const std::string& owner, const LearningRate& learning_rate, std::optional<DType> state_dtype);

}  // namespace detail

/// Returns ok, or the status that the constructor of an optimizer in ringlet/optimizers.hpp would throw for this learning rate and options.
template <class Options>
Status check_optimizer(const LearningRate& learning_rate, const Options& options) {
  if (Status status = detail::check_options(options); !status.ok()) return status;
  return detail::check_optimizer(std::string(optimizer_row<Options>().name), learning_rate, options.state_dtype);
}

}  // namespace ringlet
