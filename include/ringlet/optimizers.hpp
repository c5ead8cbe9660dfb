#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ringlet/schedules.hpp>
#include <ringlet/status.hpp>
#include <ringlet/tree.hpp>
#include <string_view>
#include <vector>

namespace ringlet {

/// A type that can apply gradients to parameters of the same names, in place: an optimizer below or a type of the program's own.
template <class T>
concept OptimizerLike =
    requires(T& optimizer, const Tree& gradients, const Tree& parameters) { optimizer.apply_gradients(gradients, parameters); };

/// A learning rate: a fixed number, or a schedule that gives the number for each step.
class LearningRate {
 public:
  /// The same number at each step.
  LearningRate(double value) : value_(value) {}
  /// A schedule that is called at each step. Throws `InvalidArgument` if it is empty.
  ///@{
  LearningRate(Schedule schedule);
  template <class Function>
    requires(!std::convertible_to<Function, double> && std::is_invocable_r_v<double, Function&, std::uint64_t>)
  LearningRate(Function schedule) : LearningRate(Schedule(std::move(schedule))) {}
  ///@}
  /// The learning rate of the step that comes after `step` others.
  double at(std::uint64_t step) const { return schedule_ ? schedule_(step) : value_; }

 private:
  double value_ = 0;
  Schedule schedule_;
};

/// An optimizer, which changes parameters by their gradients. Formulas, names and defaults are MLX's.
///
/// Arithmetic is done in f64 if parameter, gradient or state is f64, else in f32. The learning rate and the coefficients are rounded to
/// that type once, and each value is rounded once when it is stored. The same input gives the same bits on every machine.
///
/// Only one thread may use it at a time. Trees are borrowed during the call only. A call that throws `InvalidArgument` has changed nothing.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Takes one step: changes the parameters in place, makes state for names that are new to it and counts the step. There are gradients for
  /// all or some of the parameters, matched by name; parameters without a gradient, and their state, are left unchanged. Gradients and
  /// parameters are of real dtypes (is_real), which may differ, and share no memory. Views with gaps are packed for the step, which costs
  /// their size in memory. Throws `InvalidArgument` for a gradient without a parameter, a shape that differs from the parameter's or its
  /// state's, another dtype, and a schedule's learning rate that is negative or not finite.
  virtual void apply_gradients(const Tree& gradients, const Tree& parameters) = 0;
  /// Makes the state for these parameters before any step, so that a checkpoint can be loaded into it: zeros, of the option `state_dtype`
  /// or else the tensor's dtype. (A state that the first step makes has the gradient's dtype.) State that exists already is kept. Throws
  /// `InvalidArgument` as apply_gradients does.
  virtual void init(const Tree& parameters) = 0;

  /// Views of the state's memory, named "<parameter>.<slot>" ("layers.0.weight.m"), in the order in which the parameters were first seen.
  /// The views are valid as long as the optimizer exists.
  virtual Tree state() = 0;
  /// The bytes of all tensors of the state.
  virtual std::size_t state_bytes() const = 0;

  /// The number of steps taken, 0 at first.
  virtual std::uint64_t step() const = 0;
  /// Sets the number of steps taken, when training continues from a checkpoint.
  virtual void set_step(std::uint64_t step) = 0;

  /// The learning rate of the last step or, before the first step and after set_step or set_learning_rate, of the next step.
  virtual double learning_rate() const = 0;
  /// Sets the learning rate. Throws `InvalidArgument` if its value for the next step is negative or not finite.
  virtual void set_learning_rate(LearningRate learning_rate) = 0;

 protected:
  Optimizer() = default;
};

namespace detail {

struct UpdateFormula;

/// The base of the optimizers that treat each element by itself, and therefore work on any slice of a parameter as on the whole.
class ElementwiseOptimizer : public Optimizer {
 public:
  ~ElementwiseOptimizer() override;
  void apply_gradients(const Tree& gradients, const Tree& parameters) final;
  void init(const Tree& parameters) final;
  Tree state() final;
  std::size_t state_bytes() const final;
  std::uint64_t step() const final;
  void set_step(std::uint64_t step) final;
  double learning_rate() const final;
  void set_learning_rate(LearningRate learning_rate) final;

  /// Like apply_gradients and set_learning_rate, but they return the error instead of throwing it. For Ringlet's own use in builds without
  /// exceptions.
  ///@{
  Status try_apply_gradients(const Tree& gradients, const Tree& parameters);
  Status try_set_learning_rate(LearningRate learning_rate);
  ///@}

 protected:
  /// Takes the subclass' formula; checks `learning_rate` and `state_dtype`.
  ElementwiseOptimizer(UpdateFormula formula, LearningRate learning_rate, std::optional<DType> state_dtype);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detail

// Constructors throw `InvalidArgument` for options outside the bounds given here, and for a learning rate as set_learning_rate does. In the
// formulas p is a parameter, g its gradient, and t the number of the step counted from 1. `state_dtype` is a real dtype, or unset for the
// gradient's own dtype; f32, for instance, keeps exact state for gradients of 16 bits.

/// Options of SGD.
struct SGDOptions {
  double momentum = 0;                 ///< >= 0
  double weight_decay = 0;             ///< >= 0
  double dampening = 0;                ///< in [0, 1]
  bool nesterov = false;               ///< if true, momentum must be > 0 and dampening 0
  std::optional<DType> state_dtype{};  ///< a real dtype; unset: the gradient's own
};
/// h = g + weight_decay p. Without momentum p -= rate h, and there is no state. With momentum v = momentum v + (1 - dampening) h and p -=
/// rate v, or with Nesterov's momentum p -= rate (h + momentum v).
class SGD final : public detail::ElementwiseOptimizer {
 public:
  /// Throws `InvalidArgument` for options or a learning rate outside their bounds.
  explicit SGD(LearningRate learning_rate, const SGDOptions& options = {});
};

/// Options of RMSprop.
struct RMSpropOptions {
  double alpha = 0.99;                 ///< in [0, 1)
  double eps = 1e-8;                   ///< > 0
  std::optional<DType> state_dtype{};  ///< a real dtype; unset: the gradient's own
};
/// v = alpha v + (1 - alpha) g^2; p -= rate g / (sqrt(v) + eps)
class RMSprop final : public detail::ElementwiseOptimizer {
 public:
  /// Throws `InvalidArgument` for options or a learning rate outside their bounds.
  explicit RMSprop(LearningRate learning_rate, const RMSpropOptions& options = {});
};

/// Options of Adagrad.
struct AdagradOptions {
  double eps = 1e-8;                   ///< > 0
  std::optional<DType> state_dtype{};  ///< a real dtype; unset: the gradient's own
};
/// v += g^2; p -= rate g / (sqrt(v) + eps)
class Adagrad final : public detail::ElementwiseOptimizer {
 public:
  /// Throws `InvalidArgument` for options or a learning rate outside their bounds.
  explicit Adagrad(LearningRate learning_rate, const AdagradOptions& options = {});
};

/// Options of AdaDelta.
struct AdaDeltaOptions {
  double rho = 0.9;                    ///< in [0, 1)
  double eps = 1e-6;                   ///< > 0
  std::optional<DType> state_dtype{};  ///< a real dtype; unset: the gradient's own
};
/// v = rho v + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(v + eps) g; u = rho u + (1 - rho) d^2; p -= rate d
class AdaDelta final : public detail::ElementwiseOptimizer {
 public:
  /// Throws `InvalidArgument` for options or a learning rate outside their bounds.
  explicit AdaDelta(LearningRate learning_rate, const AdaDeltaOptions& options = {});
};

/// Options of Adam.
struct AdamOptions {
  std::array<double, 2> betas{0.9, 0.999};  ///< each in [0, 1)
  double eps = 1e-8;                        ///< > 0
  bool bias_correction = false;             ///< MLX's default; PyTorch always corrects
  std::optional<DType> state_dtype{};       ///< a real dtype; unset: the gradient's own
};
/// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; p -= rate m / (sqrt(v) + eps). With bias correction rate is divided by
/// 1 - beta1^t and sqrt(v) by sqrt(1 - beta2^t).
class Adam final : public detail::ElementwiseOptimizer {
 public:
  /// Throws `InvalidArgument` for options or a learning rate outside their bounds.
  explicit Adam(LearningRate learning_rate, const AdamOptions& options = {});
};

/// Options of AdamW.
struct AdamWOptions {
  std::array<double, 2> betas{0.9, 0.999};  ///< each in [0, 1)
  double eps = 1e-8;                        ///< > 0
  double weight_decay = 0.01;               ///< >= 0
  bool bias_correction = false;             ///< MLX's default; PyTorch always corrects
  std::optional<DType> state_dtype{};       ///< a real dtype; unset: the gradient's own
};
/// Adam on p (1 - rate weight_decay).
class AdamW final : public detail::ElementwiseOptimizer {
 public:
  /// Throws `InvalidArgument` for options or a learning rate outside their bounds.
  explicit AdamW(LearningRate learning_rate, const AdamWOptions& options = {});
};

/// Options of Adamax.
struct AdamaxOptions {
  std::array<double, 2> betas{0.9, 0.999};  ///< each in [0, 1)
  double eps = 1e-8;                        ///< > 0
  std::optional<DType> state_dtype{};       ///< a real dtype; unset: the gradient's own
};
/// m = beta1 m + (1 - beta1) g; v = max(beta2 v, |g|); p -= rate m / (v + eps)
class Adamax final : public detail::ElementwiseOptimizer {
 public:
  /// Throws `InvalidArgument` for options or a learning rate outside their bounds.
  explicit Adamax(LearningRate learning_rate, const AdamaxOptions& options = {});
};

/// Options of Lion.
struct LionOptions {
  std::array<double, 2> betas{0.9, 0.99};  ///< each in [0, 1)
  double weight_decay = 0;                 ///< >= 0
  std::optional<DType> state_dtype{};      ///< a real dtype; unset: the gradient's own
};
/// c = beta1 m + (1 - beta1) g; m = beta2 m + (1 - beta2) g; p = p (1 - rate weight_decay) - rate sign(c)
class Lion final : public detail::ElementwiseOptimizer {
 public:
  /// Throws `InvalidArgument` for options or a learning rate outside their bounds.
  explicit Lion(LearningRate learning_rate, const LionOptions& options = {});
};

/// Several optimizers, each for some of the parameters. A parameter belongs to the first optimizer whose filter accepts it, or to the last
/// one, which has no filter. All of them count every step.
class MultiOptimizer final : public Optimizer {
 public:
  /// A filter gets the parameter's name and its gradient (in init: the parameter). It must always decide alike for a name.
  using Filter = std::function<bool(std::string_view name, ConstTensorView values)>;
  /// Throws `InvalidArgument` if there is no optimizer, one is null, a filter is empty, or the number of filters is not one less than that
  /// of optimizers.
  MultiOptimizer(std::vector<std::shared_ptr<Optimizer>> optimizers, std::vector<Filter> filters);

  /// If an optimizer throws for its parameters, those before it have already taken their step.
  void apply_gradients(const Tree& gradients, const Tree& parameters) override;
  void init(const Tree& parameters) override;
  /// The optimizers' states, one after the other.
  Tree state() override;
  std::size_t state_bytes() const override;
  /// The step and the learning rate are the first optimizer's; setting either sets it for all optimizers.
  std::uint64_t step() const override;
  void set_step(std::uint64_t step) override;
  double learning_rate() const override;
  void set_learning_rate(LearningRate learning_rate) override;

 private:
  std::vector<Tree> split(const Tree& tree) const;

  std::vector<std::shared_ptr<Optimizer>> optimizers_;
  std::vector<Filter> filters_;
};

/// Scales all gradients in place by min(max_norm / (norm + 1e-6), 1), where norm is the Euclidean norm of all their elements together, and
/// returns norm. It is summed in f64, so that gradients of 16 or 32 bits cannot overflow it; the elements are rounded once. A NaN in any
/// element makes all elements NaN. The dtypes are f16, bf16, f32, f64 and complex64. Throws `InvalidArgument` for another dtype and for a
/// max_norm that is negative or NaN.
double clip_grad_norm(const Tree& gradients, double max_norm);

}  // namespace ringlet
