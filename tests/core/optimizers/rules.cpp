#include "tests/core/optimizers/rules.hpp"

#include <cmath>
#include <random>

namespace ringlet::test {

namespace {

using Real = long double;

template <class Type, class Options>
auto maker(double rate, Options options) {
  return [=](std::optional<DType> state_dtype) -> std::unique_ptr<Optimizer> {
    Options with_dtype = options;
    with_dtype.state_dtype = state_dtype;
    return std::make_unique<Type>(rate, with_dtype);
  };
}

Step sgd(Real rate, Real momentum, Real weight_decay, Real dampening, bool nesterov) {
  return [=](Exact e, Real g, int) {
    g += weight_decay * e.parameter;
    if (momentum == 0) {
      e.parameter -= rate * g;
      return e;
    }
    e.slots[0] = momentum * e.slots[0] + (1 - dampening) * g;
    e.parameter -= rate * (nesterov ? g + momentum * e.slots[0] : e.slots[0]);
    return e;
  };
}

Step squares(Real rate, Real decay, Real gain, Real eps) {
  return [=](Exact e, Real g, int) {
    e.slots[0] = decay * e.slots[0] + gain * g * g;
    e.parameter -= rate * g / (std::sqrt(e.slots[0]) + eps);
    return e;
  };
}

Step adadelta(Real rate, Real rho, Real eps) {
  return [=](Exact e, Real g, int) {
    Real& v = e.slots[0];
    Real& u = e.slots[1];
    v = rho * v + (1 - rho) * g * g;
    const Real d = std::sqrt(u + eps) / std::sqrt(v + eps) * g;
    u = rho * u + (1 - rho) * d * d;
    e.parameter -= rate * d;
    return e;
  };
}

Step adam(Real rate, Real beta1, Real beta2, Real eps, Real weight_decay, bool bias_correction) {
  return [=](Exact e, Real g, int step) {
    Real& m = e.slots[0];
    Real& v = e.slots[1];
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const Real m_hat = bias_correction ? m / (1 - std::pow(beta1, step)) : m;
    const Real v_hat = bias_correction ? v / (1 - std::pow(beta2, step)) : v;
    e.parameter -= rate * weight_decay * e.parameter;
    e.parameter -= rate * m_hat / (std::sqrt(v_hat) + eps);
    return e;
  };
}

Step adamax(Real rate, Real beta1, Real beta2, Real eps) {
  return [=](Exact e, Real g, int) {
    e.slots[0] = beta1 * e.slots[0] + (1 - beta1) * g;
    e.slots[1] = std::max(beta2 * e.slots[1], std::abs(g));
    e.parameter -= rate * e.slots[0] / (e.slots[1] + eps);
    return e;
  };
}

Step lion(Real rate, Real beta1, Real beta2, Real weight_decay) {
  return [=](Exact e, Real g, int) {
    const Real c = beta1 * e.slots[0] + (1 - beta1) * g;
    e.slots[0] = beta2 * e.slots[0] + (1 - beta2) * g;
    e.parameter -= rate * weight_decay * e.parameter;
    e.parameter -= rate * static_cast<Real>((c > 0) - (c < 0));
    return e;
  };
}

// The reference repeats each default value, so that the defaults are tested, too.
std::vector<Rule> make_rules() {
  return {
      {"SGD", {}, maker<SGD>(0.1, SGDOptions{}), sgd(0.1L, 0, 0, 0, false)},
      {"SGD decaying", {}, maker<SGD>(0.1, SGDOptions{.weight_decay = 0.05}), sgd(0.1L, 0, 0.05L, 0, false)},
      {"SGD with momentum", {"v"}, maker<SGD>(0.1, SGDOptions{.momentum = 0.9, .weight_decay = 0.01}), sgd(0.1L, 0.9L, 0.01L, 0, false)},
      {"SGD dampened", {"v"}, maker<SGD>(0.1, SGDOptions{.momentum = 0.8, .dampening = 0.3}), sgd(0.1L, 0.8L, 0, 0.3L, false)},
      {"SGD after Nesterov",
       {"v"},
       maker<SGD>(0.1, SGDOptions{.momentum = 0.9, .weight_decay = 0.01, .nesterov = true}),
       sgd(0.1L, 0.9L, 0.01L, 0, true)},
      {"RMSprop", {"v"}, maker<RMSprop>(0.01, RMSpropOptions{}), squares(0.01L, 0.99L, 0.01L, 1e-8L)},
      {"RMSprop with options", {"v"}, maker<RMSprop>(0.01, RMSpropOptions{.alpha = 0.5, .eps = 0.1}), squares(0.01L, 0.5L, 0.5L, 0.1L)},
      {"Adagrad", {"v"}, maker<Adagrad>(0.1, AdagradOptions{}), squares(0.1L, 1, 1, 1e-8L)},
      {"Adagrad with options", {"v"}, maker<Adagrad>(0.1, AdagradOptions{.eps = 0.2}), squares(0.1L, 1, 1, 0.2L)},
      {"AdaDelta", {"v", "u"}, maker<AdaDelta>(1.0, AdaDeltaOptions{}), adadelta(1, 0.9L, 1e-6L)},
      {"AdaDelta with options", {"v", "u"}, maker<AdaDelta>(0.5, AdaDeltaOptions{.rho = 0.7, .eps = 0.01}), adadelta(0.5L, 0.7L, 0.01L)},
      {"Adam", {"m", "v"}, maker<Adam>(0.01, AdamOptions{}), adam(0.01L, 0.9L, 0.999L, 1e-8L, 0, false)},
      {"Adam corrected", {"m", "v"}, maker<Adam>(0.01, AdamOptions{.bias_correction = true}), adam(0.01L, 0.9L, 0.999L, 1e-8L, 0, true)},
      {"AdamW", {"m", "v"}, maker<AdamW>(0.01, AdamWOptions{}), adam(0.01L, 0.9L, 0.999L, 1e-8L, 0.01L, false)},
      {"AdamW with options",
       {"m", "v"},
       maker<AdamW>(0.01, AdamWOptions{.betas = {0.8, 0.95}, .eps = 1e-3, .weight_decay = 0.3, .bias_correction = true}),
       adam(0.01L, 0.8L, 0.95L, 1e-3L, 0.3L, true)},
      {"Adamax", {"m", "v"}, maker<Adamax>(0.01, AdamaxOptions{}), adamax(0.01L, 0.9L, 0.999L, 1e-8L)},
      {"Adamax with options",
       {"m", "v"},
       maker<Adamax>(0.01, AdamaxOptions{.betas = {0.7, 0.8}, .eps = 0.05}),
       adamax(0.01L, 0.7L, 0.8L, 0.05L)},
      {"Lion", {"m"}, maker<Lion>(0.01, LionOptions{}), lion(0.01L, 0.9L, 0.99L, 0)},
      {"Lion with options", {"m"}, maker<Lion>(0.01, LionOptions{.betas = {0.5, 0.8}, .weight_decay = 0.2}), lion(0.01L, 0.5L, 0.8L, 0.2L)},
  };
}

}  // namespace

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> kRules = make_rules();
  return kRules;
}

std::vector<double> random_values(std::size_t count, std::uint64_t seed, double scale) {
  std::mt19937_64 generator(seed);
  std::vector<double> values(count);
  // The values are odd numbers over a power of two, so that none is zero, on whose sign f32 and f64 might not agree.
  for (double& value : values) value = scale * (static_cast<double>(2 * (generator() % 1'048'576) + 1) / 1'048'576 - 1);
  return values;
}

}  // namespace ringlet::test
