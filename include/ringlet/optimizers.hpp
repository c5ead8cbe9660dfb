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

/// Whatever can apply gradients to parameters of the same names, in place: the optimizers below or a type of the user's own.
template <class T>
concept OptimizerLike =
    requires(T& optimizer, const Tree& gradients, const Tree& parameters) { optimizer.apply_gradients(gradients, parameters); };

/// A number, or a schedule that is asked at each step.
class LearningRate {
 public:
  /// The same number at each step.
  LearningRate(double value) : value_(value) {}
  /// Throws `InvalidArgument` where it is empty.
  ///@{
  LearningRate(Schedule schedule);
  template <class Function>
    requires(!std::convertible_to<Function, double> && std::is_invocable_r_v<double, Function&, std::uint64_t>)
  LearningRate(Function schedule) : LearningRate(Schedule(std::move(schedule))) {}
  ///@}
  /// At the step that comes after `step` others.
  double at(std::uint64_t step) const { return schedule_ ? schedule_(step) : value_; }

 private:
  double value_ = 0;
  Schedule schedule_;
};

/// Changes parameters by their gradients. Formulas, names and defaults are MLX's.
///
/// Arithmetic is f64 where parameter, gradient or state is f64, else f32; learning rate and coefficients are rounded to it once, and so is
/// each value when it is stored. The same input gives the same bits on every machine.
///
/// One thread at a time. Trees are borrowed for the call alone. What a call refuses it refuses before it has changed anything.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Takes one step: changes the parameters in place, makes state for names it has not met and counts the step. The gradients are those of
  /// all or some of the parameters, by name; parameters without a gradient, and their state, are left alone. Both are of real
  /// dtypes (is_real), each of its own, and share no memory. Views with gaps are packed for the step, which costs their size in memory.
  /// Throws `InvalidArgument` for a gradient without parameter, a shape that is not the parameter's or not that of its state, another
  /// dtype, and a learning rate that the schedule gives and that is negative or not finite.
  virtual void apply_gradients(const Tree& gradients, const Tree& parameters) = 0;
  /// Makes the state for these parameters before any step, for a checkpoint to be read into: zeros, of the option `state_dtype` or else
  /// the tensor's dtype. (Left to the first step, it is made in the gradient's dtype.) What there is already stays. Throws
  /// `InvalidArgument` as apply_gradients does.
  virtual void init(const Tree& parameters) = 0;

  /// The state's own memory, as "<parameter>.<slot>" ("layers.0.weight.m"), parameters in the order in which they were met. The views are
  /// good as long as the optimizer is.
  virtual Tree state() = 0;
  /// Of the state's tensors.
  virtual std::size_t state_bytes() const = 0;

  /// Steps taken, 0 at first.
  virtual std::uint64_t step() const = 0;
  /// When training goes on from a checkpoint.
  virtual void set_step(std::uint64_t step) = 0;

  /// The learning rate of the last step; before the first, and after set_step or set_learning_rate, the one of the next.
  virtual double learning_rate() const = 0;
  /// Throws `InvalidArgument` where it is negative or not finite at the next step.
  virtual void set_learning_rate(LearningRate learning_rate) = 0;

 protected:
  Optimizer() = default;
};

namespace detail {

struct UpdateFormula;

/// What all optimizers share whose step treats each element by itself, and so works on any slice of a parameter as on the whole.
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

  /// As apply_gradients and set_learning_rate, but what those throw is returned. Ringlet's own: for where exceptions are off.
  ///@{
  Status try_apply_gradients(const Tree& gradients, const Tree& parameters);
  Status try_set_learning_rate(LearningRate learning_rate);
  ///@}

 protected:
  /// The subclasses' formula; checks `learning_rate` and `state_dtype`.
  ElementwiseOptimizer(UpdateFormula formula, LearningRate learning_rate, std::optional<DType> state_dtype);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detail

// Constructors throw `InvalidArgument` for options outside the bounds given here, and for a learning rate as set_learning_rate does. In the
// formulas p is a parameter, g its gradient, t the number of the step counted from 1. `state_dtype` is a real dtype: say f32 to
// keep exact state for gradients of 16 bits; unset: the gradient's own dtype.

/// Of SGD.
struct SGDOptions {
  double momentum = 0;                 ///< >= 0
  double weight_decay = 0;             ///< >= 0
  double dampening = 0;                ///< in [0, 1]
  bool nesterov = false;               ///< needs momentum, and no dampening
  std::optional<DType> state_dtype{};  ///< a real dtype; unset: the gradient's own
};
/// h = g + weight_decay p; without momentum p -= rate h, and there is no state. Else v = momentum v + (1 - dampening) h and p -= rate v, or
/// with Nesterov's momentum p -= rate (h + momentum v).
class SGD final : public detail::ElementwiseOptimizer {
 public:
  /// Throws `InvalidArgument` for options or a learning rate outside their bounds.
  explicit SGD(LearningRate learning_rate, const SGDOptions& options = {});
};

/// Of RMSprop.
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

/// Of Adagrad.
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

/// Of AdaDelta.
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

/// Of Adam.
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

/// Of AdamW.
struct AdamWOptions {
  std::array<double, 2> betas{0.9, 0.999};  ///< each in [0, 1)
  double eps = 1e-8;                        ///< > 0
  double weight_decay = 0.01;               ///< >= 0
  bool bias_correction = false;             ///< as Adam's
  std::optional<DType> state_dtype{};       ///< a real dtype; unset: the gradient's own
};
/// Adam on p (1 - rate weight_decay).
class AdamW final : public detail::ElementwiseOptimizer {
 public:
  /// Throws `InvalidArgument` for options or a learning rate outside their bounds.
  explicit AdamW(LearningRate learning_rate, const AdamWOptions& options = {});
};

/// Of Adamax.
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

/// Of Lion.
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

/// Several optimizers, each for some of the parameters. A parameter goes to the first one whose filter takes it, or to the last, which has
/// none. All of them count every step.
class MultiOptimizer final : public Optimizer {
 public:
  /// Given the parameter's name and its gradient (in init the parameter); must always decide alike for a name.
  using Filter = std::function<bool(std::string_view name, ConstTensorView values)>;
  /// Throws `InvalidArgument` where there is no optimizer, one is null, a filter is empty, or there is not one filter fewer than
  /// optimizers.
  MultiOptimizer(std::vector<std::shared_ptr<Optimizer>> optimizers, std::vector<Filter> filters);

  /// Where an optimizer refuses its part, those before it have taken their step.
  void apply_gradients(const Tree& gradients, const Tree& parameters) override;
  void init(const Tree& parameters) override;
  /// The optimizers' states, one after the other.
  Tree state() override;
  std::size_t state_bytes() const override;
  /// Of the first optimizer, as is the learning rate; setting either sets it for all.
  std::uint64_t step() const override;
  void set_step(std::uint64_t step) override;
  double learning_rate() const override;
  void set_learning_rate(LearningRate learning_rate) override;

 private:
  std::vector<Tree> split(const Tree& tree) const;

  std::vector<std::shared_ptr<Optimizer>> optimizers_;
  std::vector<Filter> filters_;
};

/// Scales all gradients, in place, by min(max_norm / (norm + 1e-6), 1), where norm is the Euclidean norm of all their elements together;
/// returns norm. It is summed in f64, so that no gradient of 16 or 32 bits overflows it; the elements are rounded once. A NaN anywhere
/// becomes NaN everywhere. f16, bf16, f32, f64 or complex64. Throws `InvalidArgument` for another dtype, and for a max_norm that is
/// negative or NaN.
double clip_grad_norm(const Tree& gradients, double max_norm);

}  // namespace ringlet
