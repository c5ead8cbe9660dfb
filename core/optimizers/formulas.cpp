#include <cmath>
#include <ringlet/optimizers.hpp>

#include "core/base/enumerators.hpp"
#include "core/optimizers/check_optimizer.hpp"
#include "core/optimizers/formula.hpp"
#include "core/optimizers/power.hpp"

// The optimizers. Each consists of a kernel's rule and the coefficients that the rule takes.
namespace ringlet {

namespace {

using detail::UpdateFormula;
using simd::UpdateCoefficients;
using simd::UpdateRule;

static_assert(!is_enumerator<static_cast<UpdateRule>(simd::kUpdateRuleCount)>, "a rule lacks its row in simd/kernels.hpp");

UpdateFormula formula(const SGDOptions& o) {
  const UpdateRule rule = o.nesterov ? UpdateRule::nesterov : o.momentum > 0 ? UpdateRule::momentum : UpdateRule::sgd;
  return {rule, {"v"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .penalty = o.weight_decay, .decay = {o.momentum, 0}, .gain = {1 - o.dampening, 0}};
          }};
}

UpdateFormula formula(const RMSpropOptions& o) {
  return {UpdateRule::root_mean_square, {"v"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .decay = {o.alpha, 0}, .gain = {1 - o.alpha, 0}, .epsilon = o.eps};
          }};
}

UpdateFormula formula(const AdagradOptions& o) {
  return {UpdateRule::root_mean_square, {"v"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .decay = {1, 0}, .gain = {1, 0}, .epsilon = o.eps};
          }};
}

UpdateFormula formula(const AdaDeltaOptions& o) {
  return {UpdateRule::adadelta, {"v", "u"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .decay = {o.rho, 0}, .gain = {1 - o.rho, 0}, .epsilon = o.eps};
          }};
}

UpdateFormula formula(const AdamWOptions& o) {
  return {UpdateRule::adam, {"m", "v"}, [o](double rate, std::uint64_t step) {
            UpdateCoefficients c{.rate = rate,
                                 .keep = 1 - rate * o.weight_decay,
                                 .decay = {o.betas[0], o.betas[1]},
                                 .gain = {1 - o.betas[0], 1 - o.betas[1]},
                                 .epsilon = o.eps};
            if (o.bias_correction) {
              c.rate = rate / (1 - power(o.betas[0], step));
              c.correction = 1 / std::sqrt(1 - power(o.betas[1], step));
            }
            return c;
          }};
}

UpdateFormula formula(const AdamOptions& o) {
  return formula(AdamWOptions{.betas = o.betas, .eps = o.eps, .weight_decay = 0, .bias_correction = o.bias_correction});
}

UpdateFormula formula(const AdamaxOptions& o) {
  return {UpdateRule::adamax, {"m", "v"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .decay = {o.betas[0], o.betas[1]}, .gain = {1 - o.betas[0], 0}, .epsilon = o.eps};
          }};
}

UpdateFormula formula(const LionOptions& o) {
  return {
      UpdateRule::lion, {"m"}, [o](double rate, std::uint64_t) {
        return UpdateCoefficients{
            .rate = rate, .keep = 1 - rate * o.weight_decay, .decay = {o.betas[0], o.betas[1]}, .gain = {1 - o.betas[0], 1 - o.betas[1]}};
      }};
}

template <class Options>
UpdateFormula checked_formula(const Options& options) {
  throw_if_failed(detail::check_options(options));
  UpdateFormula made = formula(options);
  made.name = optimizer_row<Options>().name;
  return made;
}

}  // namespace

namespace detail {

void check_option(OptionChecks& checks, const std::string& name, double value, OptionBound bound) {
  switch (bound) {
    case OptionBound::any:
      return;
    case OptionBound::not_negative:
      checks.not_negative(name, value);
      return;
    case OptionBound::positive:
      checks.positive(name, value);
      return;
    case OptionBound::fraction:
      checks.require(value >= 0 && value < 1, name, value, "at least 0 and below 1");
      return;
    case OptionBound::share:
      checks.require(value >= 0 && value <= 1, name, value, "at least 0 and at most 1");
      return;
  }
}

void check_option(OptionChecks& checks, const std::string& name, const std::array<double, 2>& values, OptionBound bound) {
  for (std::size_t i = 0; i < values.size(); ++i) check_option(checks, name + "[" + std::to_string(i) + "]", values[i], bound);
}

void check_together(OptionChecks& checks, const SGDOptions& o) {
  if (!o.nesterov) return;
  checks.require(o.momentum > 0, "momentum", o.momentum, "above 0 with nesterov");
  checks.require(o.dampening == 0, "dampening", o.dampening, "0 with nesterov");
}

}  // namespace detail

SGD::SGD(LearningRate rate, const SGDOptions& options)
    : ElementwiseOptimizer(checked_formula(options), std::move(rate), options.state_dtype) {}
RMSprop::RMSprop(LearningRate rate, const RMSpropOptions& options)
    : ElementwiseOptimizer(checked_formula(options), std::move(rate), options.state_dtype) {}
Adagrad::Adagrad(LearningRate rate, const AdagradOptions& options)
    : ElementwiseOptimizer(checked_formula(options), std::move(rate), options.state_dtype) {}
AdaDelta::AdaDelta(LearningRate rate, const AdaDeltaOptions& options)
    : ElementwiseOptimizer(checked_formula(options), std::move(rate), options.state_dtype) {}
Adam::Adam(LearningRate rate, const AdamOptions& options)
    : ElementwiseOptimizer(checked_formula(options), std::move(rate), options.state_dtype) {}
AdamW::AdamW(LearningRate rate, const AdamWOptions& options)
    : ElementwiseOptimizer(checked_formula(options), std::move(rate), options.state_dtype) {}
Adamax::Adamax(LearningRate rate, const AdamaxOptions& options)
    : ElementwiseOptimizer(checked_formula(options), std::move(rate), options.state_dtype) {}
Lion::Lion(LearningRate rate, const LionOptions& options)
    : ElementwiseOptimizer(checked_formula(options), std::move(rate), options.state_dtype) {}

}  // namespace ringlet
