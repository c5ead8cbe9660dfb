#include <fmt/format.h>

#include <optional>
#include <ringlet/elastic_fsdp.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/refuse.hpp"
#include "core/sharding/checks.hpp"
#include "native/agreement.hpp"
#include "native/elastic/elastic_shards.hpp"
#include "native/residual_addends.hpp"
#include "native/shared_group.hpp"

namespace ringlet {

struct ElasticFsdp::Full final : State {
  /// What belongs to one world.
  struct InWorld {
    InWorld(const Group& group, const ElasticFsdpOptions& options) : mover(group.shared().options()), driver({group}, options.stream) {}
    ShardMover mover;
    std::vector<ShardBucket> reductions, gathers;
    Tree gradients;                  // those that were reduced last
    native::ProcedureDriver driver;  // declared last: its destructor waits for the collectives that use the buckets
  };

  Full(Group world, const Tree& p, MakeOptimizer make, const ElasticFsdpOptions& o)
      : State(std::move(world), std::move(make),
              {.copies = o.copies, .weight = o.shard_weight, .rebuild_size = o.rebuild_size, .stream = o.stream}, o.max_norm),
        parameters(p),
        options(o) {
    throw_if_failed(check_real_wire("reduce_dtype", o.reduce_dtype));
    rows.view(parameters);
  }

  std::string settings() const override {
    return fmt::format("communication_size {}\nreduce_dtype {}\n", options.communication_size, native::name_or_unset(options.reduce_dtype));
  }
  void leave_world() override { in_world.reset(); }
  void begin_in_world() override {
    in_world = std::make_unique<InWorld>(rows.group(), options);
    in_world->gathers = make_buckets(parameters, rows.layout(), options.communication_size, std::nullopt);
  }
  void gather() override;
  bool has_rows_of_rank_before() const;
  void add_parameters(Checkpoint& checkpoint, std::string_view name) override { checkpoint.add(name, parameters); }
  std::span<ShardResiduals> residuals() override { return {&of_gradients, 1}; }
  void add_residuals(Checkpoint& checkpoint) override {
    native::add_residuals(checkpoint, kShardResiduals, options.reduce_dtype, {{&of_gradients.gradients, "", native::names_in(parameters)}});
  }
  std::optional<double> average(const Tree& gradients, double factor);

  const Tree parameters;
  const ElasticFsdpOptions options;
  std::unique_ptr<InWorld> in_world;
  ShardResiduals of_gradients;
};

std::optional<double> ElasticFsdp::Full::average(const Tree& gradients, double factor) {
  if (!in_world) refuse("average() before enter()");
  throw_if_failed(check_gradients(gradients, options.reduce_dtype.has_value()));
  if (!difference(gradients, "", in_world->gradients, "").empty()) {
    throw_if_failed(check_same_shapes(gradients, parameters));
    native::require_same_tree(rows.group(), "average()", gradients, options.stream);
    const auto wire = wire_among(rows.group().size(), options.reduce_dtype);
    in_world->reductions = make_buckets(gradients, rows.layout(), options.communication_size, wire);
    in_world->gradients = gradients;
    rows.make_gradients(gradients);
  }
  ShardResiduals* const feedback = has_feedback(options.reduce_dtype) ? &of_gradients : nullptr;
  in_world->mover.set_factor(factor);
  ShardMove move = ShardMove::reduce(in_world->mover, nullptr, in_world->reductions, gradients, rows.parts().front().gradients, feedback);
  in_world->driver.drive(move);
  rows.exchange_gradients();
  return clip();
}

/// Whether every rank has the updated rows of the one before it, whose second holder it is.
bool ElasticFsdp::Full::has_rows_of_rank_before() const {
  if (!rows.are_twofold()) return false;
  const RowSpread& spread = rows.spread();
  for (int rank = 0; rank < spread.ranks(); ++rank)
    if (spread.holder(rank, 1) != (rank + 1) % spread.ranks()) return false;
  return !rows.group().shared().options().topology.has_guests();
}

void ElasticFsdp::Full::gather() {
  if (!in_world) refuse("gather() before enter()");
  if (rows.are_whole()) return;
  const Tree* before = has_rows_of_rank_before() ? &rows.parts()[1].parameters : nullptr;
  // Of two ranks each has computed all rows.
  if (before == nullptr || rows.group().size() > 2) {
    ShardMove move = ShardMove::gather(in_world->mover, in_world->gathers, rows.parts().front().parameters, parameters, before);
    in_world->driver.drive(move);
  }
  rows.set_whole();
}

ElasticFsdp::ElasticFsdp(Group world, const Tree& parameters, MakeOptimizer make_optimizer, const ElasticFsdpOptions& options)
    : ElasticShards(std::make_unique<Full>(std::move(world), parameters, std::move(make_optimizer), options)) {}

ElasticFsdp::Full& ElasticFsdp::full() const noexcept { return static_cast<Full&>(*state_); }

std::optional<double> ElasticFsdp::average(const Tree& gradients, double share) { return full().average(gradients, share); }
std::optional<double> ElasticFsdp::average(const Tree& gradients) { return full().average(gradients, state_->share); }

}  // namespace ringlet
