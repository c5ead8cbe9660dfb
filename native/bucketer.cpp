#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ringlet/gradients.hpp>
#include <utility>

#include "core/base/refuse.hpp"
#include "core/gradients/wire_format.hpp"
#include "native/agreement.hpp"
#include "native/shared_group.hpp"

namespace ringlet {

namespace {

/// The order comes from rank 0, and what it names are indices here.
void require_permutation(const Group& group, const std::vector<std::uint32_t>& order) {
  const Membership& members = group.shared().engine().members();
  std::vector<std::uint8_t> seen(order.size());
  for (const std::uint32_t index : order)
    if (index >= seen.size() || std::exchange(seen[index], std::uint8_t{1}) != 0)
      group.shared().fail_for_violation(
          {Errc::protocol_error,
           fmt::format("{} sent an order of {} gradients with {}", members.name_of(0), order.size(),
                       index < seen.size() ? fmt::format("number {} twice", index) : fmt::format("a number {}", index)),
           members.world_rank(0)});
}

}  // namespace

struct GradientBucketer::State {
  State(Group g, const Tree& tree, const BucketerOptions& o)
      : group(g), gradients(tree), options(o), averager(std::move(g), o.average), reported(tree.size()), order(tree.size()) {
    std::iota(order.rbegin(), order.rend(), std::uint32_t{0});
  }

  void add_those_in_turn();
  void add_missing();
  void adopt_observed_order();
  std::string missing_names() const;

  Group group;
  const Tree gradients;
  BucketerOptions options;
  GradientAverager averager;
  std::vector<std::uint8_t> reported;   // in this step, by index
  std::vector<std::uint32_t> order;     // in which tensors are given to the averager, the same on every rank
  std::size_t next = 0;                 // in `order`
  std::vector<std::uint32_t> observed;  // of the first step
  bool order_is_observed = false;
  Tree averaged;
};

void GradientBucketer::State::add_those_in_turn() {
  while (next < order.size() && reported[order[next]]) averager.add(gradients[order[next++]].values);
}

void GradientBucketer::State::add_missing() {
  for (std::size_t i = 0; i < reported.size(); ++i) {
    if (reported[i]) continue;
    const TensorView& values = gradients[i].values;
    copy(Tensor(values.dtype(), values.shape()), values);
  }
  while (next < order.size()) averager.add(gradients[order[next++]].values);
}

/// Tensors that rank 0 did not report come last, in their former order.
void GradientBucketer::State::adopt_observed_order() {
  if (std::exchange(order_is_observed, true)) return;
  std::vector<std::uint8_t> seen(order.size());
  for (const std::uint32_t index : observed) seen[index] = 1;
  for (const std::uint32_t index : order)
    if (!seen[index]) observed.push_back(index);
  group.broadcast(observed, 0, {.stream = options.average.stream});
  require_permutation(group, observed);
  if (observed == order) return;
  order = std::move(observed);
  // An averager knows gradients by their order. Its residuals are of those in the former one.
  if (has_feedback(options.average.communication_type)) averager = GradientAverager(group, options.average);
}

std::string GradientBucketer::State::missing_names() const {
  std::string names;
  for (std::size_t i = 0; i < reported.size(); ++i)
    if (!reported[i]) names += (names.empty() ? "'" : ", '") + gradients[i].name + "'";
  return names;
}

GradientBucketer::GradientBucketer(Group group, const Tree& gradients, const BucketerOptions& options) {
  native::require_same_tree(group, "GradientBucketer", gradients, options.average.stream);
  state_ = std::make_unique<State>(std::move(group), gradients, options);
}
GradientBucketer::GradientBucketer(GradientBucketer&&) noexcept = default;
GradientBucketer& GradientBucketer::operator=(GradientBucketer&&) noexcept = default;
GradientBucketer::~GradientBucketer() = default;

void GradientBucketer::set_weight(std::optional<double> weight) {
  state_->averager.set_weight(weight);
  state_->options.average.weight = weight;
}

void GradientBucketer::ready(std::string_view name) { ready(state_->gradients.index_of(name)); }

void GradientBucketer::ready(std::size_t index) {
  State& state = *state_;
  if (index >= state.reported.size()) refuse(fmt::format("there is no gradient {}; the tree has {}", index, state.reported.size()));
  if (state.reported[index]) refuse(fmt::format("the gradient '{}' was reported ready already in this step", state.gradients[index].name));
  state.reported[index] = 1;
  if (!state.order_is_observed) state.observed.push_back(static_cast<std::uint32_t>(index));
  state.add_those_in_turn();
}

void GradientBucketer::finish() {
  State& state = *state_;
  const bool complete = std::find(state.reported.begin(), state.reported.end(), 0) == state.reported.end();
  if (!state.options.allow_missing && !complete)
    refuse(fmt::format("these gradients were not reported ready: {}; report them, or allow_missing", state.missing_names()));
  if (!complete) state.add_missing();
  state.averager.finish();
  if (state.options.allow_missing && state.group.size() > 1) state.group.all_max(state.reported, {.stream = state.options.average.stream});
  state.averaged = Tree();
  for (std::size_t i = 0; i < state.reported.size(); ++i)
    if (state.reported[i]) state.averaged.add(state.gradients[i].name, state.gradients[i].values);
  state.adopt_observed_order();
  state.next = 0;
  std::fill(state.reported.begin(), state.reported.end(), 0);
}

const Tree& GradientBucketer::averaged() const noexcept { return state_->averaged; }
std::size_t GradientBucketer::collectives() const noexcept { return state_->averager.collectives(); }

}  // namespace ringlet
