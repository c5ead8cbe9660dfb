#include <cmath>
#include <ringlet/optimizers.hpp>

#include "core/optimizers/check_optimizer.hpp"
#include "core/optimizers/checks.hpp"
#include "core/optimizers/formula.hpp"
#include "core/optimizers/power.hpp"

// The optimizers, each as its rule and its coefficients.
namespace ringlet {

namespace {

using detail::UpdateFormula;
using simd::UpdateCoefficients;
using simd::UpdateRule;

OptionChecks& betas(OptionChecks& checks, const std::array<double, 2>& values) {
  return checks.fraction("betas[0]", values[0]).fraction("betas[1]", values[1]);
}

Status check(const SGDOptions& o) {
  OptionChecks checks("SGD");
  checks.not_negative("momentum", o.momentum).not_negative("weight_decay", o.weight_decay);
  checks.require(o.dampening >= 0 && o.dampening <= 1, "dampening", o.dampening, "at least 0 and at most 1");
  if (o.nesterov) {
    checks.require(o.momentum > 0, "momentum", o.momentum, "above 0 with nesterov");
    checks.require(o.dampening == 0, "dampening", o.dampening, "0 with nesterov");
  }
  return checks.status();
}

Status check(const RMSpropOptions& o) { return OptionChecks("RMSprop").fraction("alpha", o.alpha).positive("eps", o.eps).status(); }
Status check(const AdagradOptions& o) { return OptionChecks("Adagrad").positive("eps", o.eps).status(); }
Status check(const AdaDeltaOptions& o) { return OptionChecks("AdaDelta").fraction("rho", o.rho).positive("eps", o.eps).status(); }

Status check(const AdamOptions& o) {
  OptionChecks checks("Adam");
  return betas(checks, o.betas).positive("eps", o.eps).status();
}

Status check(const AdamWOptions& o) {
  OptionChecks checks("AdamW");
  return betas(checks, o.betas).positive("eps", o.eps).not_negative("weight_decay", o.weight_decay).status();
}

Status check(const AdamaxOptions& o) {
  OptionChecks checks("Adamax");
  return betas(checks, o.betas).positive("eps", o.eps).status();
}

Status check(const LionOptions& o) {
  OptionChecks checks("Lion");
  return betas(checks, o.betas).not_negative("weight_decay", o.weight_decay).status();
}

UpdateFormula formula(const SGDOptions& o) {
  const UpdateRule rule = o.nesterov ? UpdateRule::nesterov : o.momentum > 0 ? UpdateRule::momentum : UpdateRule::sgd;
  return {"SGD", rule, {"v"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .penalty = o.weight_decay, .decay = {o.momentum, 0}, .gain = {1 - o.dampening, 0}};
          }};
}

UpdateFormula formula(const RMSpropOptions& o) {
  return {"RMSprop", UpdateRule::root_mean_square, {"v"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .decay = {o.alpha, 0}, .gain = {1 - o.alpha, 0}, .epsilon = o.eps};
          }};
}

UpdateFormula formula(const AdagradOptions& o) {
  return {"Adagrad", UpdateRule::root_mean_square, {"v"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .decay = {1, 0}, .gain = {1, 0}, .epsilon = o.eps};
          }};
}

UpdateFormula formula(const AdaDeltaOptions& o) {
  return {"AdaDelta", UpdateRule::adadelta, {"v", "u"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .decay = {o.rho, 0}, .gain = {1 - o.rho, 0}, .epsilon = o.eps};
          }};
}

/// Adam and AdamW, which differ in the decay.
UpdateFormula adam_formula(const std::string& name, const AdamWOptions& o) {
  return {name, UpdateRule::adam, {"m", "v"}, [o](double rate, std::uint64_t step) {
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
  return adam_formula("Adam", {.betas = o.betas, .eps = o.eps, .weight_decay = 0, .bias_correction = o.bias_correction});
}

UpdateFormula formula(const AdamWOptions& o) { return adam_formula("AdamW", o); }

UpdateFormula formula(const AdamaxOptions& o) {
  return {"Adamax", UpdateRule::adamax, {"m", "v"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .decay = {o.betas[0], o.betas[1]}, .gain = {1 - o.betas[0], 0}, .epsilon = o.eps};
          }};
}

UpdateFormula formula(const LionOptions& o) {
  return {
      "Lion", UpdateRule::lion, {"m"}, [o](double rate, std::uint64_t) {
        return UpdateCoefficients{
            .rate = rate, .keep = 1 - rate * o.weight_decay, .decay = {o.betas[0], o.betas[1]}, .gain = {1 - o.betas[0], 1 - o.betas[1]}};
      }};
}

}  // namespace

namespace {

template <class Options>
UpdateFormula checked_formula(const Options& options) {
  throw_if_failed(check(options));
  return formula(options);
}

}  // namespace

template <class Options>
Status check_optimizer(const LearningRate& rate, const Options& options) {
  if (Status status = check(options); !status.ok()) return status;
  return detail::check_optimizer(formula(options).name, rate, options.state_dtype);
}
template Status check_optimizer(const LearningRate& rate, const SGDOptions& options);
template Status check_optimizer(const LearningRate& rate, const RMSpropOptions& options);
template Status check_optimizer(const LearningRate& rate, const AdagradOptions& options);
template Status check_optimizer(const LearningRate& rate, const AdaDeltaOptions& options);
template Status check_optimizer(const LearningRate& rate, const AdamOptions& options);
template Status check_optimizer(const LearningRate& rate, const AdamWOptions& options);
template Status check_optimizer(const LearningRate& rate, const AdamaxOptions& options);
template Status check_optimizer(const LearningRate& rate, const LionOptions& options);

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
