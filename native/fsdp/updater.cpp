#include <fmt/format.h>

#include <atomic>
#include <ringlet/fsdp.hpp>
#include <string>
#include <utility>

#include "core/base/refuse.hpp"
#include "core/sharding/fsdp_step.hpp"
#include "native/exclusive_call.hpp"
#include "native/procedure_driver.hpp"
#include "native/residual_addends.hpp"
#include "native/shared_group.hpp"

namespace ringlet {

namespace {

std::vector<Group> groups_of(Group fsdp_group, const FsdpOptions& options) {
  std::vector<Group> groups{std::move(fsdp_group)};
  if (options.dp_group) groups.push_back(*options.dp_group);
  return groups;
}

const WorldOptions* replicas_of(const FsdpOptions& options) { return options.dp_group ? &options.dp_group->shared().options() : nullptr; }

FsdpSettings settings_of(const FsdpOptions& options) {
  return {options.communication_size, options.max_norm, options.reduce_dtype, options.shard_weights};
}

}  // namespace

FsdpUpdater detail::updater_of_one_step(Group group, const FsdpOptions& options) {
  if (has_feedback(options.reduce_dtype))
    refuse("fsdp_apply_gradients: error feedback needs an FsdpUpdater, to keep what rounding leaves out");
  return {std::move(group), options};
}

struct FsdpUpdater::State {
  State(Group group, const FsdpOptions& options)
      : wire(options.reduce_dtype),
        shard(group.rank()),
        shards(group.size()),
        step(group.shared().engine(), group.shared().agreements(), replicas_of(options), settings_of(options)),
        driver(groups_of(std::move(group), options), options.stream) {}

  const std::optional<Wire> wire;
  const int shard, shards;
  FsdpStep step;
  native::ProcedureDriver driver;
  std::atomic<bool> is_stepping = false;
};

FsdpUpdater::FsdpUpdater(Group fsdp_group, const FsdpOptions& options) {
  throw_if_failed(FsdpStep::check(settings_of(options), fsdp_group.size()));
  state_ = std::make_unique<State>(std::move(fsdp_group), options);
}
FsdpUpdater::FsdpUpdater(FsdpUpdater&&) noexcept = default;
FsdpUpdater& FsdpUpdater::operator=(FsdpUpdater&&) noexcept = default;
FsdpUpdater::~FsdpUpdater() = default;

const ShardLayout* FsdpUpdater::layout() const noexcept { return state_->step.layout(); }

void FsdpUpdater::add_to(Checkpoint& checkpoint, std::string_view name) {
  ShardResiduals& residuals = state_->step.residuals();
  // Each shard has sums of its own, which mean nothing to a rank with another one.
  const std::string sums = fmt::format("sums.{}-of-{}.", state_->shard, state_->shards);
  native::add_residuals(checkpoint, name, state_->wire, {{&residuals.gradients, "gradients."}, {&residuals.sums, sums}});
}

std::optional<double> FsdpUpdater::apply_gradients(const Tree& gradients, const Tree& parameters, const ApplyGradients& apply) {
  const native::ExclusiveCall step(state_->is_stepping, "apply_gradients() of an FsdpUpdater while another step of it runs");
  state_->step.begin(gradients, parameters, [&apply](const Tree& g, const Tree& p) {
    apply(g, p);
    return Status();
  });
  state_->driver.drive(state_->step);
  return state_->step.norm();
}

double clip_grad_norm_sharded(Group group, const Tree& gradients, double max_norm, Stream stream) {
  ClipSharded clip(group.shared().options(), gradients, max_norm);
  native::ProcedureDriver({std::move(group)}, stream).drive(clip);
  return clip.norm();
}

}  // namespace ringlet
