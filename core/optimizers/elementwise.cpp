#include <ringlet/optimizers.hpp>
#include <unordered_map>
#include <utility>

#include "core/base/names_text.hpp"
#include "core/base/number_text.hpp"
#include "core/base/refuse.hpp"
#include "core/optimizers/check_optimizer.hpp"
#include "core/optimizers/checks.hpp"
#include "core/optimizers/formula.hpp"
#include "core/optimizers/update_leaf.hpp"

namespace ringlet {

namespace {

std::string not_real(DType dtype) { return std::string(name_of(dtype)) + "; it must be " + names_of_dtypes(is_real, "or"); }

Status check_rate(const std::string& owner, double value, std::uint64_t step) {
  if (std::isfinite(value) && value >= 0) return {};
  return invalid(owner + ": the learning rate of step " + std::to_string(step) + " is " + number_text(value) +
                 "; it must be finite and not negative");
}

}  // namespace

LearningRate::LearningRate(Schedule schedule) : schedule_(std::move(schedule)) {
  if (!schedule_) refuse("the learning rate's schedule is empty; give a function of the step");
}

namespace detail {

struct ElementwiseOptimizer::State {
  /// The state of one parameter.
  struct Entry {
    std::string name;
    Shape shape;
    std::array<Tensor, 2> slots;
  };

  Status check_state(const Leaf& leaf, const char* role) const;
  Status check_leaf(const Leaf& gradient, const TensorView* parameter) const;
  Entry& entry_for(const Leaf& leaf);
  std::size_t slots() const { return simd::slots_of(formula.rule); }

  UpdateFormula formula;
  LearningRate rate;
  std::optional<DType> state_dtype;
  std::uint64_t step = 0;
  std::optional<double> last_rate{};
  std::vector<Entry> entries{};
  std::unordered_map<std::string, std::size_t> positions{};
  std::vector<LeafUpdate> updates{};  // of the current step; a member so that its memory is kept
};

Status check_optimizer(const std::string& owner, const LearningRate& learning_rate, std::optional<DType> state_dtype) {
  if (state_dtype && !is_real(*state_dtype)) return invalid(owner + ": state_dtype is " + not_real(*state_dtype));
  return check_rate(owner, learning_rate.at(0), 0);
}

/// Checks that a leaf fits its state. `role` says what the leaf is: a gradient or a parameter.
Status ElementwiseOptimizer::State::check_state(const Leaf& leaf, const char* role) const {
  const auto who = [&] { return formula.name + ": the " + role + " '" + leaf.name + "' "; };
  if (!is_real(leaf.values.dtype())) return invalid(who() + "is " + not_real(leaf.values.dtype()));
  const auto position = positions.find(leaf.name);
  if (position == positions.end()) return {};
  const Shape& shape = entries[position->second].shape;
  if (shape == leaf.values.shape()) return {};
  return invalid(who() + "has the shape " + to_string(leaf.values.shape()) + " but its state " + to_string(shape) +
                 "; give the slice of before, or use a new optimizer");
}

Status ElementwiseOptimizer::State::check_leaf(const Leaf& gradient, const TensorView* parameter) const {
  if (Status status = check_state(gradient, "gradient"); !status.ok()) return status;
  const auto who = [&] { return formula.name + ": the gradient '" + gradient.name + "' "; };
  if (parameter == nullptr) return invalid(who() + "has no parameter of that name");
  if (!(parameter->shape() == gradient.values.shape()))
    return invalid(who() + "is " + describe(gradient.values) + " but its parameter " + describe(*parameter) + "; both need the same shape");
  if (!is_real(parameter->dtype()))
    return invalid(formula.name + ": the parameter '" + gradient.name + "' is " + not_real(parameter->dtype()));
  return {};
}

/// Returns the state of a parameter, and makes it first if there is none.
ElementwiseOptimizer::State::Entry& ElementwiseOptimizer::State::entry_for(const Leaf& leaf) {
  if (const auto position = positions.find(leaf.name); position != positions.end()) return entries[position->second];
  Entry entry{leaf.name, leaf.values.shape(), {}};
  for (std::size_t slot = 0; slot < slots(); ++slot)
    entry.slots[slot] = Tensor(state_dtype.value_or(leaf.values.dtype()), leaf.values.shape());
  entries.push_back(std::move(entry));
  positions.emplace(leaf.name, entries.size() - 1);
  return entries.back();
}

ElementwiseOptimizer::ElementwiseOptimizer(UpdateFormula formula, LearningRate learning_rate, std::optional<DType> state_dtype)
    : state_(new State{std::move(formula), std::move(learning_rate), state_dtype}) {
  throw_if_failed(check_optimizer(state_->formula.name, state_->rate, state_dtype));
}

ElementwiseOptimizer::~ElementwiseOptimizer() = default;

void ElementwiseOptimizer::apply_gradients(const Tree& gradients, const Tree& parameters) {
  throw_if_failed(try_apply_gradients(gradients, parameters));
}

Status ElementwiseOptimizer::try_apply_gradients(const Tree& gradients, const Tree& parameters) {
  State& s = *state_;
  // Another rounding mode of the caller, or flushing of small numbers to zero, would change the bits. The schedule, too, is computed in
  // this environment.
  const simd::FloatEnvironment environment;
  const double rate = s.rate.at(s.step);
  if (Status status = check_rate(s.formula.name, rate, s.step); !status.ok()) return status;
  s.updates.clear();
  for (const Leaf& gradient : gradients) {
    const TensorView* parameter = parameters.find(gradient.name);
    if (Status status = s.check_leaf(gradient, parameter); !status.ok()) return status;
    s.updates.push_back({*parameter, gradient.values, {}});
  }
  if (s.slots() != 0) {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      State::Entry& entry = s.entry_for(gradients[i]);
      for (std::size_t slot = 0; slot < s.slots(); ++slot) s.updates[i].state[slot] = entry.slots[slot];
    }
  }
  const simd::UpdateCoefficients coefficients = s.formula.coefficients(rate, s.step + 1);
  // All targets give the same bits, so there is no need for an option to choose one.
  const simd::Kernels& kernels = *simd::available().back();
  for (const LeafUpdate& update : s.updates) update_leaf(update, s.formula.rule, coefficients, kernels);
  ++s.step;
  s.last_rate = rate;
  return {};
}

void ElementwiseOptimizer::init(const Tree& parameters) {
  for (const Leaf& parameter : parameters) throw_if_failed(state_->check_state(parameter, "parameter"));
  if (state_->slots() == 0) return;
  for (const Leaf& parameter : parameters) state_->entry_for(parameter);
}

Tree ElementwiseOptimizer::state() {
  Tree tree;
  for (State::Entry& entry : state_->entries) {
    for (std::size_t slot = 0; slot < state_->slots(); ++slot)
      tree.add(entry.name + "." + std::string(state_->formula.slots[slot]), entry.slots[slot]);
  }
  return tree;
}

std::size_t ElementwiseOptimizer::state_bytes() const {
  std::size_t bytes = 0;
  for (const State::Entry& entry : state_->entries)
    for (const Tensor& slot : entry.slots) bytes += slot.bytes();
  return bytes;
}

std::uint64_t ElementwiseOptimizer::step() const { return state_->step; }

void ElementwiseOptimizer::set_step(std::uint64_t step) {
  state_->step = step;
  state_->last_rate.reset();
}

double ElementwiseOptimizer::learning_rate() const {
  if (state_->last_rate) return *state_->last_rate;
  const double rate = state_->rate.at(state_->step);
  throw_if_failed(check_rate(state_->formula.name, rate, state_->step));
  return rate;
}

void ElementwiseOptimizer::set_learning_rate(LearningRate learning_rate) {
  throw_if_failed(try_set_learning_rate(std::move(learning_rate)));
}

Status ElementwiseOptimizer::try_set_learning_rate(LearningRate learning_rate) {
  if (Status status = check_rate(state_->formula.name, learning_rate.at(state_->step), state_->step); !status.ok()) return status;
  state_->rate = std::move(learning_rate);
  state_->last_rate.reset();
  return {};
}

}  // namespace detail

}  // namespace ringlet
