#include <ringlet/optimizers.hpp>
#include <unordered_map>
#include <utility>

#include "core/optimizers/checks.hpp"
#include "core/optimizers/formula.hpp"
#include "core/optimizers/update_leaf.hpp"

namespace ringlet {

namespace {

bool is_real(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64; }

}  // namespace

LearningRate::LearningRate(Schedule schedule) : schedule_(std::move(schedule)) {
  if (!schedule_) refuse("the learning rate's schedule is empty; give a function of the step");
}

namespace detail {

struct ElementwiseOptimizer::State {
  /// One parameter's.
  struct Entry {
    std::string name;
    Shape shape;
    std::array<Tensor, 2> slots;
  };

  double checked_rate() const;
  void check_state(const Leaf& leaf, const char* role) const;
  const TensorView& parameter_of(const Leaf& gradient, const Tree& parameters) const;
  Entry& entry_for(const Leaf& leaf);
  std::size_t slots() const { return simd::slots_of(formula.rule); }

  UpdateFormula formula;
  LearningRate rate;
  std::optional<DType> state_dtype;
  std::uint64_t step = 0;
  std::optional<double> last_rate{};
  std::vector<Entry> entries{};
  std::unordered_map<std::string, std::size_t> positions{};
  std::vector<LeafUpdate> updates{};  // of the step under way; kept for its memory
};

double ElementwiseOptimizer::State::checked_rate() const {
  const double value = rate.at(step);
  if (!(std::isfinite(value) && value >= 0))
    refuse(formula.name + ": the learning rate of step " + std::to_string(step) + " is " + number_text(value) +
           "; it must be finite and not negative");
  return value;
}

/// `role` says what the leaf is.
void ElementwiseOptimizer::State::check_state(const Leaf& leaf, const char* role) const {
  const std::string_view dtype = name_of(leaf.values.dtype());
  if (!is_real(leaf.values.dtype()))
    refuse(formula.name + ": the " + role + " '" + leaf.name + "' is " + std::string(dtype) + "; it must be f16, bf16, f32 or f64");
  const auto position = positions.find(leaf.name);
  if (position == positions.end()) return;
  const Shape& shape = entries[position->second].shape;
  if (!(shape == leaf.values.shape()))
    refuse(formula.name + ": the " + role + " '" + leaf.name + "' has the shape " + to_string(leaf.values.shape()) + " but its state " +
           to_string(shape) + "; give the slice of before, or use a new optimizer");
}

const TensorView& ElementwiseOptimizer::State::parameter_of(const Leaf& gradient, const Tree& parameters) const {
  check_state(gradient, "gradient");
  const TensorView* parameter = parameters.find(gradient.name);
  if (parameter == nullptr) refuse(formula.name + ": the gradient '" + gradient.name + "' has no parameter of that name");
  if (!(parameter->shape() == gradient.values.shape()))
    refuse(formula.name + ": the gradient '" + gradient.name + "' is " + describe(gradient.values) + " but its parameter " +
           describe(*parameter) + "; both need the same shape");
  if (!is_real(parameter->dtype()))
    refuse(formula.name + ": the parameter '" + gradient.name + "' is " + std::string(name_of(parameter->dtype())) +
           "; it must be f16, bf16, f32 or f64");
  return *parameter;
}

/// Makes it where there is none.
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
  if (state_dtype && !is_real(*state_dtype))
    refuse(state_->formula.name + ": state_dtype is " + std::string(name_of(*state_dtype)) + "; it must be f16, bf16, f32 or f64");
  state_->checked_rate();
}

ElementwiseOptimizer::~ElementwiseOptimizer() = default;

void ElementwiseOptimizer::apply_gradients(const Tree& gradients, const Tree& parameters) {
  State& s = *state_;
  // A caller's rounding, or flushing of small numbers, would change the bits; the schedule is computed in the same mode.
  const simd::FloatEnvironment environment;
  const double rate = s.checked_rate();
  s.updates.clear();
  for (const Leaf& gradient : gradients) s.updates.push_back({s.parameter_of(gradient, parameters), gradient.values, {}});
  if (s.slots() != 0) {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      State::Entry& entry = s.entry_for(gradients[i]);
      for (std::size_t slot = 0; slot < s.slots(); ++slot) s.updates[i].state[slot] = entry.slots[slot];
    }
  }
  const simd::UpdateCoefficients coefficients = s.formula.coefficients(rate, s.step + 1);
  // All targets give the same bits, so there is no choice to offer.
  const simd::Kernels& kernels = *simd::available().back();
  for (const LeafUpdate& update : s.updates) update_leaf(update, s.formula.rule, coefficients, kernels);
  ++s.step;
  s.last_rate = rate;
}

void ElementwiseOptimizer::init(const Tree& parameters) {
  for (const Leaf& parameter : parameters) state_->check_state(parameter, "parameter");
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

double ElementwiseOptimizer::learning_rate() const { return state_->last_rate ? *state_->last_rate : state_->checked_rate(); }

void ElementwiseOptimizer::set_learning_rate(LearningRate learning_rate) {
  std::swap(state_->rate, learning_rate);
  try {
    state_->checked_rate();
  } catch (...) {
    std::swap(state_->rate, learning_rate);
    throw;
  }
  state_->last_rate.reset();
}

}  // namespace detail

}  // namespace ringlet
