#include "wasm/cpp/optimizers.hpp"

#include <array>
#include <string>

#include "core/optimizers/check_optimizer.hpp"

namespace ringlet::browser {

namespace {

/// Options out of a list of numbers.
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

void read(Numbers& from, SGDOptions& o) { from.read(o.momentum), from.read(o.weight_decay), from.read(o.dampening), from.read(o.nesterov); }
void read(Numbers& from, RMSpropOptions& o) { from.read(o.alpha), from.read(o.eps); }
void read(Numbers& from, AdagradOptions& o) { from.read(o.eps); }
void read(Numbers& from, AdaDeltaOptions& o) { from.read(o.rho), from.read(o.eps); }
void read(Numbers& from, AdamOptions& o) { from.read(o.betas), from.read(o.eps), from.read(o.bias_correction); }
void read(Numbers& from, AdamWOptions& o) { from.read(o.betas), from.read(o.eps), from.read(o.weight_decay), from.read(o.bias_correction); }
void read(Numbers& from, AdamaxOptions& o) { from.read(o.betas), from.read(o.eps); }
void read(Numbers& from, LionOptions& o) { from.read(o.betas), from.read(o.weight_decay); }

Status refused(std::string text) { return {Errc::invalid_argument, std::move(text)}; }

using Made = Result<std::shared_ptr<AnyOptimizer>>;

template <class Kind, class Options>
Made make(double learning_rate, std::span<const double> numbers, std::optional<DType> state_dtype) {
  Options options;
  Numbers from(numbers);
  read(from, options);
  if (!from.empty()) return refused("the optimizer is given " + std::to_string(numbers.size()) + " options, more than it has");
  options.state_dtype = state_dtype;
  if (Status status = check_optimizer(learning_rate, options); !status.ok()) return status;
  return std::shared_ptr<AnyOptimizer>(std::make_shared<Kind>(learning_rate, options));
}

struct Formula {
  std::string_view name;
  Made (*make)(double learning_rate, std::span<const double> numbers, std::optional<DType> state_dtype);
};

constexpr Formula kFormulas[] = {
    {"SGD", make<SGD, SGDOptions>},
    {"RMSprop", make<RMSprop, RMSpropOptions>},
    {"Adagrad", make<Adagrad, AdagradOptions>},
    {"AdaDelta", make<AdaDelta, AdaDeltaOptions>},
    {"Adam", make<Adam, AdamOptions>},
    {"AdamW", make<AdamW, AdamWOptions>},
    {"Adamax", make<Adamax, AdamaxOptions>},
    {"Lion", make<Lion, LionOptions>},
};

}  // namespace

Result<std::shared_ptr<AnyOptimizer>> make_optimizer(std::string_view formula, double learning_rate, std::span<const double> numbers,
                                                     std::optional<DType> state_dtype) {
  std::string names;
  for (const Formula& known : kFormulas) {
    if (known.name == formula) return known.make(learning_rate, numbers, state_dtype);
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  return refused("there is no optimizer '" + std::string(formula) + "'; there are " + names);
}

}  // namespace ringlet::browser
