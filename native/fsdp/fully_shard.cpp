#include <fmt/format.h>

#include <utility>

#include "core/base/refuse.hpp"
#include "core/sharding/checks.hpp"
#include "native/agreement.hpp"
#include "native/fsdp/fully_shard_state.hpp"
#include "native/residual_addends.hpp"

namespace ringlet {

namespace {

/// A bucket size without a limit: all tensors of one dtype of a module are moved together.
constexpr std::int64_t kWholeModule = INT64_MAX;

Tree make_tensors(const Tree& like, const std::function<Shape(const std::string&)>& shape, std::optional<DType> dtype,
                  std::vector<Tensor>& memory) {
  memory.clear();
  return like.map([&](const std::string& name, const TensorView& values) -> TensorView {
    memory.emplace_back(dtype.value_or(values.dtype()), shape(name));
    return memory.back().view();
  });
}

}  // namespace

const Tree& FullyShard::Unsharded::parameters() const noexcept { return gathered_->parameters; }

std::shared_ptr<FullyShard::Gathered> FullyShard::State::start_gather(Module& module) {
  if (auto alive = module.gathered.lock()) return alive;
  auto gathered = std::make_shared<Gathered>();
  module.gathered = gathered;
  if (group.size() == 1 && !options.compute_dtype) {
    // The optimizer changes the shards, and what was gathered stays as it was.
    gathered->parameters = module.outline.map([&](const std::string& name, const TensorView& values) -> TensorView {
      const ConstTensorView shard(module.shards.at(name).data(), values.dtype(), values.shape());
      return gathered->memory.emplace_back(Tensor::copy_of(shard)).view();
    });
    return gathered;
  }
  gathered->parameters = make_tensors(
      module.outline, [&](const std::string& name) { return module.layout.full_shape(name); }, options.compute_dtype, gathered->memory);
  for (ShardBucket& bucket : module.gathers) gathered->works.push_back(start(mover.start_gather(bucket, module.shards)));
  return gathered;
}

void FullyShard::State::finish_gather(Module& module, Gathered& gathered) {
  auto works = std::exchange(gathered.works, {});
  for (std::size_t i = 0; i < works.size(); ++i) {
    works[i].wait();
    mover.finish_gather(module.gathers[i], gathered.parameters);
  }
}

void FullyShard::State::finish_reduction(Module& module) {
  auto works = std::exchange(module.reducing, {});
  for (std::size_t i = 0; i < works.size(); ++i) {
    works[i].wait();
    mover.finish_reduce(module.reductions[i], module.gradients);
  }
}

FullyShard::Unsharded FullyShard::State::use(std::size_t index, int direction) {
  Module& wanted = module(index);
  std::shared_ptr<Gathered> gathered = start_gather(wanted);
  ahead[index].reset();
  for (int step = 1; step <= options.prefetch; ++step) {
    const std::int64_t next = static_cast<std::int64_t>(index) + step * direction;
    if (next < 0 || next >= static_cast<std::int64_t>(modules.size())) break;
    const auto n = static_cast<std::size_t>(next);
    if (!ahead[n]) ahead[n] = start_gather(*modules[n]);
  }
  finish_gather(wanted, *gathered);
  return Unsharded(std::move(gathered));
}

FullyShard::FullyShard(Group group, const FullyShardOptions& options) {
  throw_if_failed(check_real_dtype("compute_dtype", options.compute_dtype));
  throw_if_failed(check_real_wire("reduce_dtype", options.reduce_dtype));
  if (options.prefetch < 0) refuse(fmt::format("prefetch is {}; it must not be negative", options.prefetch));
  throw_if_failed(check_shard_weights(options.shard_weights, group.size()));
  state_ = std::make_unique<State>(std::move(group), options);
}
FullyShard::FullyShard(FullyShard&&) noexcept = default;
FullyShard& FullyShard::operator=(FullyShard&&) noexcept = default;
FullyShard::~FullyShard() = default;

std::size_t FullyShard::add(std::string name, const Tree& parameters) {
  State& state = *state_;
  throw_if_failed(check_gradients(parameters, state.options.compute_dtype || state.options.reduce_dtype));
  Tree named;
  named.add(name, parameters);
  native::require_same_tree(state.group, "add()", named, state.options.stream);
  auto module = std::make_unique<State::Module>(std::move(name), parameters, state.group.size(), state.options.shard_weights);
  const int rank = state.group.rank();
  module->shards = make_tensors(
      module->outline, [&](const std::string& tensor) { return module->layout.shard_shape(tensor, rank); }, std::nullopt,
      module->shard_memory);
  const Tree rows = module->layout.shard(parameters, rank);
  for (std::size_t i = 0; i < rows.size(); ++i) copy(rows[i].values, module->shards[i].values);
  return state.take(std::move(module));
}

std::size_t FullyShard::State::take(std::unique_ptr<Module> module) {
  module->gathers = make_buckets(module->outline, module->layout, kWholeModule, options.compute_dtype);
  Tree all = parameters;
  all.add(module->name, module->shards);
  parameters = std::move(all);
  modules.push_back(std::move(module));
  ahead.emplace_back();
  return modules.size() - 1;
}

std::size_t FullyShard::modules() const noexcept { return state_->modules.size(); }

FullyShard::Unsharded FullyShard::forward(std::size_t module) { return state_->use(module, 1); }
FullyShard::Unsharded FullyShard::backward(std::size_t module) { return state_->use(module, -1); }

void FullyShard::reduce_gradients(std::size_t index, const Tree& gradients) {
  State& state = *state_;
  State::Module& module = state.module(index);
  if (module.given) refuse(fmt::format("the gradients of module '{}' were given already in this step", module.name));
  throw_if_failed(check_gradients(gradients, true));
  throw_if_failed(check_same_shapes(gradients, module.outline));
  if (module.gradients.empty())
    module.gradients = make_tensors(
        module.outline, [&](const std::string& tensor) { return module.shards.at(tensor).shape(); }, std::nullopt, module.gradient_memory);
  if (module.reductions.empty())
    module.reductions = make_buckets(gradients, module.layout, kWholeModule, wire_among(state.group.size(), state.options.reduce_dtype));
  // Each reduction holds a copy of its module's full gradients, so there are only as many at a time as there are modules with full
  // parameters.
  while (state.reducing.size() > static_cast<std::size_t>(state.options.prefetch)) {
    state.finish_reduction(*state.reducing.front());
    state.reducing.pop_front();
  }
  module.given = true;
  state.reducing.push_back(&module);
  ShardResiduals* const residuals = has_feedback(state.options.reduce_dtype) ? &module.residuals() : nullptr;
  if (residuals != nullptr) residuals->begin();
  for (ShardBucket& bucket : module.reductions)
    module.reducing.push_back(state.start(state.mover.start_reduce(bucket, gradients, residuals)));
}

void FullyShard::finish() {
  State& state = *state_;
  for (State::Module* module : std::exchange(state.reducing, {})) state.finish_reduction(*module);
  state.gradients = Tree();
  for (auto& module : state.modules) {
    module->gathered.reset();
    if (std::exchange(module->given, false)) state.gradients.add(module->name, module->gradients);
    // Residuals that are another's are of a step that it commits.
    if (module->lent_residuals == nullptr) module->own_residuals.commit();
  }
  // Parameters that were gathered ahead but not used are older than the optimizer's step, so they are discarded.
  for (std::size_t i = 0; i < state.ahead.size(); ++i) {
    if (!state.ahead[i]) continue;
    state.finish_gather(*state.modules[i], *state.ahead[i]);
    state.ahead[i].reset();
  }
}

void FullyShard::add_to(Checkpoint& checkpoint, std::string_view name) {
  std::vector<native::ResidualAddends::Part> parts;
  for (const auto& module : state_->modules)
    parts.push_back({&module->residuals().gradients, module->name + ".", native::names_in(module->outline)});
  native::add_residuals(checkpoint, name, state_->options.reduce_dtype, std::move(parts));
}

const Tree& FullyShard::parameters() const noexcept { return state_->parameters; }
const Tree& FullyShard::gradients() const noexcept { return state_->gradients; }

ShardLayout FullyShard::layout() const {
  Tree all;
  for (const auto& module : state_->modules) all.add(module->name, module->outline);
  return {all, state_->group.size(), state_->options.shard_weights};
}

}  // namespace ringlet
