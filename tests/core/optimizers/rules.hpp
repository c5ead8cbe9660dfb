#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ringlet/optimizers.hpp>
#include <string>
#include <vector>

namespace ringlet::test {

/// One element's parameter and state after a step by the formula, in a precision that is higher than any optimizer's.
struct Exact {
  long double parameter = 0;
  long double slots[2]{};
};
using Step = std::function<Exact(Exact before, long double gradient, int step)>;  // step counted from 1

/// An optimizer with its options, and the formula that it must follow.
struct Rule {
  std::string name;
  std::vector<std::string> slots;
  std::function<std::unique_ptr<Optimizer>(std::optional<DType> state_dtype)> make;
  Step step;
};

/// Returns each optimizer, with the default options and with others.
const std::vector<Rule>& all_rules();

/// Returns numbers between -scale and scale, the same on every machine.
std::vector<double> random_values(std::size_t count, std::uint64_t seed, double scale);

template <class T>
std::vector<T> random_values_as(std::size_t count, std::uint64_t seed, double scale) {
  const std::vector<double> values = random_values(count, seed, scale);
  return std::vector<T>(values.begin(), values.end());
}

}  // namespace ringlet::test
