#include <cmath>
#include <ringlet/fsdp.hpp>
#include <utility>

#include "core/optimizers/norm.hpp"
#include "native/agreement.hpp"
#include "native/fsdp/checks.hpp"
#include "native/fsdp/shard_moves.hpp"

namespace ringlet {

namespace {

bool same_tensors(const Tree& a, const Tree& b) { return difference(a, "", b, "").empty(); }

/// Names, dtypes and shapes alone.
Tree outline(const Tree& tree) {
  return tree.map([](const std::string&, const TensorView& values) { return TensorView(nullptr, values.dtype(), values.shape()); });
}

}  // namespace

struct FsdpUpdater::State {
  State(Group g, const FsdpOptions& o) : group(g), options(o), mover(std::move(g), o.dp_group, o.stream) {}

  int ranks() const { return group.size() * (options.dp_group ? options.dp_group->size() : 1); }
  std::optional<double> apply_alone(const Tree& gradients, const Tree& parameters, const ApplyGradients& apply);
  void plan(const Tree& gradients, const Tree& parameters);

  Group group;
  const FsdpOptions options;
  native::ShardMover mover;

  // What the trees of the last step looked like, and what follows from it.
  Tree gradient_outline, parameter_outline;
  std::optional<ShardLayout> layout;
  std::vector<ShardBucket> reductions, gathers;
  std::vector<Tensor> shard_memory;
  Tree gradient_shards;
};

void FsdpUpdater::State::plan(const Tree& gradients, const Tree& parameters) {
  if (layout && same_tensors(gradients, gradient_outline) && same_tensors(parameters, parameter_outline)) return;
  native::check_same_shapes(gradients, parameters);
  native::require_same_tree(group, "fsdp_apply_gradients' gradients", gradients, options.stream);
  native::require_same_tree(group, "fsdp_apply_gradients' parameters", parameters, options.stream);
  layout.emplace(parameters, group.size(), options.shard_weights);
  reductions = native::make_buckets(gradients, *layout, options.communication_size, options.reduce_dtype);
  gathers = native::make_buckets(parameters, *layout, options.communication_size, std::nullopt);
  shard_memory.clear();
  gradient_shards = Tree();
  for (const auto& [name, values] : gradients) {
    shard_memory.emplace_back(values.dtype(), layout->shard_shape(name, group.rank()));
    gradient_shards.add(name, shard_memory.back().view());
  }
  gradient_outline = outline(gradients);
  parameter_outline = outline(parameters);
}

std::optional<double> FsdpUpdater::State::apply_alone(const Tree& gradients, const Tree& parameters, const ApplyGradients& apply) {
  native::check_same_shapes(gradients, parameters);
  std::optional<double> norm;
  if (options.max_norm) norm = clip_grad_norm_sharded(group, gradients, *options.max_norm, options.stream);
  layout.emplace(parameters, 1);
  apply(gradients, parameters);
  return norm;
}

FsdpUpdater::FsdpUpdater(Group fsdp_group, const FsdpOptions& options) {
  if (options.max_norm) check_max_norm(*options.max_norm);
  native::check_real_dtype("reduce_dtype", options.reduce_dtype);
  if (!options.shard_weights.empty()) static_cast<void>(ShardLayout({}, fsdp_group.size(), options.shard_weights));
  state_ = std::make_unique<State>(std::move(fsdp_group), options);
}
FsdpUpdater::FsdpUpdater(FsdpUpdater&&) noexcept = default;
FsdpUpdater& FsdpUpdater::operator=(FsdpUpdater&&) noexcept = default;
FsdpUpdater::~FsdpUpdater() = default;

const ShardLayout* FsdpUpdater::layout() const noexcept { return state_->layout ? &*state_->layout : nullptr; }

std::optional<double> FsdpUpdater::apply_gradients(const Tree& gradients, const Tree& parameters, const ApplyGradients& apply) {
  State& state = *state_;
  native::check_gradients(gradients, state.options.reduce_dtype.has_value());
  if (state.ranks() == 1) return state.apply_alone(gradients, parameters, apply);
  state.plan(gradients, parameters);
  state.mover.reduce(state.reductions, gradients, state.gradient_shards);
  std::optional<double> norm;
  if (state.options.max_norm)
    norm = clip_grad_norm_sharded(state.group, state.gradient_shards, *state.options.max_norm, state.options.stream);
  const Tree parameter_shards = state.layout->shard(parameters, state.group.rank());
  apply(state.gradient_shards, parameter_shards);
  state.mover.gather(state.gathers, parameter_shards, parameters);
  return norm;
}

double clip_grad_norm_sharded(Group group, const Tree& gradients, double max_norm, Stream stream) {
  check_max_norm(max_norm);
  double squares = sum_of_squares(gradients);
  group.all_sum(std::span(&squares, 1), {.stream = stream});
  const double norm = std::sqrt(squares);
  clip_to_norm(gradients, norm, max_norm);
  return norm;
}

}  // namespace ringlet
