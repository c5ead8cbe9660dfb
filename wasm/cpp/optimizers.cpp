#include "wasm/cpp/optimizers.hpp"

#include <array>
#include <string>

#include "core/base/refuse.hpp"
#include "core/optimizers/check_optimizer.hpp"

namespace ringlet::browser {

namespace {

/// Reads options from a list of numbers.
class Numbers {
 public:
  explicit Numbers(std::span<const double> values) : values_(values) {}
  void read(double& into) {
    if (!values_.empty()) into = take();
  }
  void read(bool& into) {
    if (!values_.empty()) into = take() != 0;
  }
  void read(std::array<double, 2>& into) {
    for (double& each : into) read(each);
  }
  bool empty() const { return values_.empty(); }

 private:
  double take() {
    const double value = values_.front();
    values_ = values_.subspan(1);
    return value;
  }

  std::span<const double> values_;
};

using Made = Result<std::shared_ptr<AnyOptimizer>>;

template <class Row>
Made make(const Row& row, double learning_rate, std::span<const double> numbers, std::optional<DType> state_dtype) {
  typename Row::Options options;
  Numbers from(numbers);
  for_each_option(row, [&](const auto& option) { from.read(options.*option.value); });
  if (!from.empty()) return invalid("the optimizer is given " + std::to_string(numbers.size()) + " options, more than it has");
  options.state_dtype = state_dtype;
  if (Status status = check_optimizer(learning_rate, options); !status.ok()) return status;
  return std::shared_ptr<AnyOptimizer>(std::make_shared<typename Row::Optimizer>(learning_rate, options));
}

}  // namespace

Result<std::shared_ptr<AnyOptimizer>> make_optimizer(std::string_view formula, double learning_rate, std::span<const double> numbers,
                                                     std::optional<DType> state_dtype) {
  std::optional<Made> made;
  std::string names;
  for_each_optimizer([&](const auto& row) {
    if (row.name == formula) made = make(row, learning_rate, numbers, state_dtype);
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  });
  if (made) return *std::move(made);
  return invalid("there is no optimizer '" + std::string(formula) + "'; there are " + names);
}

}  // namespace ringlet::browser
