#include <fmt/format.h>

#include <optional>
#include <ringlet/elastic_fsdp.hpp>
#include <utility>
#include <vector>

#include "core/base/refuse.hpp"
#include "core/sharding/checks.hpp"
#include "native/elastic/elastic_shards.hpp"
#include "native/fsdp/fully_shard_state.hpp"
#include "native/residual_addends.hpp"

namespace ringlet {

struct ElasticFullyShard::Modules final : State {
  Modules(Group world, MakeOptimizer make, const ElasticFullyShardOptions& o)
      : State(std::move(world), std::move(make),
              {.copies = o.copies, .weight = o.shard_weight, .rebuild_size = o.rebuild_size, .stream = o.stream}, o.max_norm),
        options(o) {
    throw_if_failed(check_real_dtype("compute_dtype", o.compute_dtype));
    throw_if_failed(check_real_wire("reduce_dtype", o.reduce_dtype));
    if (o.prefetch < 0) refuse(fmt::format("prefetch is {}; it must not be negative", o.prefetch));
  }

  std::string settings() const override {
    return fmt::format("compute_dtype {}\nreduce_dtype {}\nprefetch {}\n", native::name_or_unset(options.compute_dtype),
                       native::name_or_unset(options.reduce_dtype), options.prefetch);
  }
  void leave_world() override { in_world.reset(); }
  void begin_in_world() override;
  void gather() override { rows.set_whole(); }
  void add_parameters(Checkpoint& checkpoint, std::string_view name) override {
    checkpoint.add_sharded(name, rows.parts().front().parameters, rows.layout());
  }
  std::span<ShardResiduals> residuals() override { return by_module; }
  void add_residuals(Checkpoint& checkpoint) override {
    std::vector<native::ResidualAddends::Part> parts;
    for (std::size_t m = 0; m < by_module.size(); ++m)
      parts.push_back({&by_module[m].gradients, outlines[m].first + ".", native::names_in(outlines[m].second)});
    native::add_residuals(checkpoint, kShardResiduals, options.reduce_dtype, std::move(parts));
  }
  FullyShard& begun() {
    if (!in_world) refuse("a call of ElasticFullyShard before enter()");
    return *in_world;
  }

  const ElasticFullyShardOptions options;
  std::vector<std::pair<std::string, Tree>> outlines;  // of the modules
  std::vector<ShardResiduals> by_module;
  std::optional<FullyShard> in_world;  // with this rank's own shard
};

void ElasticFullyShard::Modules::begin_in_world() {
  rows.make_gradients(rows.outline());
  native::HeldPart& own = rows.parts().front();
  const std::vector<double> weights = rows.spread().uneven_weights();
  in_world.emplace(rows.group(), FullyShardOptions{.compute_dtype = options.compute_dtype,
                                                   .reduce_dtype = options.reduce_dtype,
                                                   .shard_weights = weights,
                                                   .prefetch = options.prefetch,
                                                   .stream = options.stream});
  // An attempt of the last world has not been committed, and this one may end before it has the gradients of all modules.
  by_module.resize(outlines.size());
  for (ShardResiduals& of_module : by_module) of_module.begin();
  for (const auto& [name, outline] : outlines) {
    auto module = std::make_unique<FullyShard::State::Module>(name, outline, rows.group().size(), weights);
    module->shards = own.parameters.below(name);
    module->gradients = own.gradients.below(name);
    module->lent_residuals = &by_module[in_world->modules()];
    in_world->state_->take(std::move(module));
  }
}

ElasticFullyShard::ElasticFullyShard(Group world, MakeOptimizer make_optimizer, const ElasticFullyShardOptions& options)
    : ElasticShards(std::make_unique<Modules>(std::move(world), std::move(make_optimizer), options)) {}

ElasticFullyShard::Modules& ElasticFullyShard::all() const noexcept { return static_cast<Modules&>(*state_); }

std::size_t ElasticFullyShard::add(std::string name, const Tree& parameters) {
  Modules& modules = all();
  if (modules.has_begun) refuse(fmt::format("the module '{}' is added after enter()", name));
  throw_if_failed(check_gradients(parameters, modules.options.compute_dtype || modules.options.reduce_dtype));
  Tree named;
  named.add(name, parameters);
  modules.rows.copy_rows(named);
  modules.outlines.emplace_back(std::move(name), parameters.map([](const std::string&, const TensorView& values) {
    return TensorView(nullptr, values.dtype(), values.shape());
  }));
  return modules.outlines.size() - 1;
}

std::size_t ElasticFullyShard::modules() const noexcept { return all().outlines.size(); }
std::size_t ElasticFullyShard::parameter_bytes() const noexcept { return state_->rows.parameter_bytes(); }
FullyShard::Unsharded ElasticFullyShard::forward(std::size_t module) { return all().begun().forward(module); }
FullyShard::Unsharded ElasticFullyShard::backward(std::size_t module) { return all().begun().backward(module); }

void ElasticFullyShard::reduce_gradients(std::size_t module, const Tree& gradients) {
  FullyShard& sharded = all().begun();
  sharded.state_->mover.set_factor(state_->share);
  sharded.reduce_gradients(module, gradients);
}

std::optional<double> ElasticFullyShard::finish() {
  FullyShard& sharded = all().begun();
  for (const auto& module : sharded.state_->modules)
    if (!module->given) refuse(fmt::format("finish() before the gradients of the module '{}' were given", module->name));
  sharded.finish();
  state_->rows.exchange_gradients();
  return state_->clip();
}

void ElasticFullyShard::set_share(double share) noexcept { state_->share = share; }

}  // namespace ringlet
