#include <cmath>
#include <ringlet/optimizers.hpp>

#include "core/optimizers/checks.hpp"
#include "core/optimizers/formula.hpp"
#include "core/optimizers/power.hpp"

// The optimizers, each as its rule and its coefficients.
namespace ringlet {

namespace {

using detail::UpdateFormula;
using simd::UpdateCoefficients;
using simd::UpdateRule;

void require_betas(const std::string& owner, const std::array<double, 2>& betas) {
  require_fraction(owner, "betas[0]", betas[0]);
  require_fraction(owner, "betas[1]", betas[1]);
}

UpdateFormula formula(const SGDOptions& o) {
  const std::string name = "SGD";
  require_not_negative(name, "momentum", o.momentum);
  require_not_negative(name, "weight_decay", o.weight_decay);
  require(o.dampening >= 0 && o.dampening <= 1, name, "dampening", o.dampening, "at least 0 and at most 1");
  if (o.nesterov) {
    require(o.momentum > 0, name, "momentum", o.momentum, "above 0 with nesterov");
    require(o.dampening == 0, name, "dampening", o.dampening, "0 with nesterov");
  }
  const UpdateRule rule = o.nesterov ? UpdateRule::nesterov : o.momentum > 0 ? UpdateRule::momentum : UpdateRule::sgd;
  return {name, rule, {"v"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .penalty = o.weight_decay, .decay = {o.momentum, 0}, .gain = {1 - o.dampening, 0}};
          }};
}

UpdateFormula formula(const RMSpropOptions& o) {
  require_fraction("RMSprop", "alpha", o.alpha);
  require_positive("RMSprop", "eps", o.eps);
  return {"RMSprop", UpdateRule::root_mean_square, {"v"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .decay = {o.alpha, 0}, .gain = {1 - o.alpha, 0}, .epsilon = o.eps};
          }};
}

UpdateFormula formula(const AdagradOptions& o) {
  require_positive("Adagrad", "eps", o.eps);
  return {"Adagrad", UpdateRule::root_mean_square, {"v"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .decay = {1, 0}, .gain = {1, 0}, .epsilon = o.eps};
          }};
}

UpdateFormula formula(const AdaDeltaOptions& o) {
  require_fraction("AdaDelta", "rho", o.rho);
  require_positive("AdaDelta", "eps", o.eps);
  return {"AdaDelta", UpdateRule::adadelta, {"v", "u"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .decay = {o.rho, 0}, .gain = {1 - o.rho, 0}, .epsilon = o.eps};
          }};
}

/// Adam and AdamW, which differ in the decay.
UpdateFormula adam_formula(const std::string& name, const AdamWOptions& o) {
  require_betas(name, o.betas);
  require_positive(name, "eps", o.eps);
  require_not_negative(name, "weight_decay", o.weight_decay);
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
  require_betas("Adamax", o.betas);
  require_positive("Adamax", "eps", o.eps);
  return {"Adamax", UpdateRule::adamax, {"m", "v"}, [o](double rate, std::uint64_t) {
            return UpdateCoefficients{.rate = rate, .decay = {o.betas[0], o.betas[1]}, .gain = {1 - o.betas[0], 0}, .epsilon = o.eps};
          }};
}

UpdateFormula formula(const LionOptions& o) {
  require_betas("Lion", o.betas);
  require_not_negative("Lion", "weight_decay", o.weight_decay);
  return {
      "Lion", UpdateRule::lion, {"m"}, [o](double rate, std::uint64_t) {
        return UpdateCoefficients{
            .rate = rate, .keep = 1 - rate * o.weight_decay, .decay = {o.betas[0], o.betas[1]}, .gain = {1 - o.betas[0], 1 - o.betas[1]}};
      }};
}

}  // namespace

SGD::SGD(LearningRate rate, const SGDOptions& options) : ElementwiseOptimizer(formula(options), std::move(rate), options.state_dtype) {}
RMSprop::RMSprop(LearningRate rate, const RMSpropOptions& options)
    : ElementwiseOptimizer(formula(options), std::move(rate), options.state_dtype) {}
Adagrad::Adagrad(LearningRate rate, const AdagradOptions& options)
    : ElementwiseOptimizer(formula(options), std::move(rate), options.state_dtype) {}
AdaDelta::AdaDelta(LearningRate rate, const AdaDeltaOptions& options)
    : ElementwiseOptimizer(formula(options), std::move(rate), options.state_dtype) {}
Adam::Adam(LearningRate rate, const AdamOptions& options) : ElementwiseOptimizer(formula(options), std::move(rate), options.state_dtype) {}
AdamW::AdamW(LearningRate rate, const AdamWOptions& options)
    : ElementwiseOptimizer(formula(options), std::move(rate), options.state_dtype) {}
Adamax::Adamax(LearningRate rate, const AdamaxOptions& options)
    : ElementwiseOptimizer(formula(options), std::move(rate), options.state_dtype) {}
Lion::Lion(LearningRate rate, const LionOptions& options) : ElementwiseOptimizer(formula(options), std::move(rate), options.state_dtype) {}

}  // namespace ringlet
