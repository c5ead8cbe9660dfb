#include "core/sharding/fsdp_step.hpp"

#include <utility>

#include "core/optimizers/norm.hpp"
#include "core/sharding/checks.hpp"

namespace ringlet {

namespace {

bool same_tensors(const Tree& a, const Tree& b) { return difference(a, "", b, "").empty(); }

/// A tree with the names, dtypes and shapes of `tree`, without its memory.
Tree outline(const Tree& tree) {
  return tree.map([](const std::string&, const TensorView& values) { return TensorView(nullptr, values.dtype(), values.shape()); });
}

}  // namespace

Status FsdpStep::check(const FsdpSettings& settings, int ranks) {
  if (settings.max_norm)
    if (Status status = check_max_norm(*settings.max_norm); !status.ok()) return status;
  if (Status status = check_real_wire("reduce_dtype", settings.reduce_dtype); !status.ok()) return status;
  return check_shard_weights(settings.shard_weights, ranks);
}

FsdpStep::FsdpStep(const GroupEngine& group, Agreements& agreements, const WorldOptions* replicas, FsdpSettings settings)
    : group_(group),
      agreements_(agreements),
      replicas_(replicas),
      settings_(std::move(settings)),
      mover_(group.options(), replicas == nullptr ? 1 : replicas->size) {}

void FsdpStep::begin(const Tree& gradients, const Tree& parameters, Apply apply) {
  gradients_ = gradients;
  parameters_ = parameters;
  apply_ = std::move(apply);
  norm_.reset();
  stage_ = Stage::begin;
}

void FsdpStep::abandon() {
  part_.reset();
  clip_ = nullptr;
  stage_ = Stage::done;
}

Procedure::Action FsdpStep::next() {
  for (;;) {
    if (part_) {
      Action action = part_->next();
      const Done* done = std::get_if<Done>(&action);
      if (done == nullptr || !done->status.ok()) return action;
    }
    if (stage_ == Stage::done) return Done{};
    if (Status status = go_on(); !status.ok()) return Done{std::move(status)};
  }
}

/// Begins the next stage; the current one has ended.
Status FsdpStep::go_on() {
  switch (stage_) {
    case Stage::begin:
      return start_step();
    case Stage::agree_on_gradients:
      start_agreement(Stage::agree_on_parameters, "fsdp_apply_gradients' parameters", parameters_);
      return {};
    case Stage::agree_on_parameters:
      plan();
      start_reduce();
      return {};
    case Stage::reduce:
      if (!settings_.max_norm) return apply();
      start_clip();
      return {};
    case Stage::clip:
      norm_ = clip_->norm();
      return apply();
    case Stage::gather:
    case Stage::done:
      break;
  }
  abandon();
  return {};
}

Status FsdpStep::start_step() {
  if (Status status = check_gradients(gradients_, settings_.reduce_dtype.has_value()); !status.ok()) return status;
  if (!alone() && is_planned()) {
    start_reduce();
    return {};
  }
  if (Status status = check_same_shapes(gradients_, parameters_); !status.ok()) return status;
  if (alone()) {
    stage_ = Stage::reduce;
    return {};
  }
  start_agreement(Stage::agree_on_gradients, "fsdp_apply_gradients' gradients", gradients_);
  return {};
}

void FsdpStep::start_agreement(Stage stage, const char* what, const Tree& tree) {
  stage_ = stage;
  part_ = std::make_unique<TreeAgreement>(group_, agreements_, what, tree);
}

bool FsdpStep::is_planned() const {
  return layout_ && same_tensors(gradients_, gradient_outline_) && same_tensors(parameters_, parameter_outline_);
}

void FsdpStep::plan() {
  const int rank = group_.options().rank;
  layout_.emplace(parameters_, group_.options().size, settings_.shard_weights);
  reductions_ = make_buckets(gradients_, *layout_, settings_.communication_size, settings_.reduce_dtype);
  gathers_ = make_buckets(parameters_, *layout_, settings_.communication_size, std::nullopt);
  shard_memory_.clear();
  gradient_shards_ = Tree();
  for (const auto& [name, values] : gradients_) {
    shard_memory_.emplace_back(values.dtype(), layout_->shard_shape(name, rank));
    gradient_shards_.add(name, shard_memory_.back().view());
  }
  // Before the first step they may come from a checkpoint.
  if (!gradient_outline_.empty() && !same_tensors(gradients_, gradient_outline_)) residuals_.clear();
  gradient_outline_ = outline(gradients_);
  parameter_outline_ = outline(parameters_);
}

void FsdpStep::start_reduce() {
  stage_ = Stage::reduce;
  ShardResiduals* const residuals = has_feedback(settings_.reduce_dtype) ? &residuals_ : nullptr;
  part_.reset(new ShardMove(ShardMove::reduce(mover_, replicas_, reductions_, gradients_, gradient_shards_, residuals)));
}

void FsdpStep::start_clip() {
  auto clip = std::make_unique<ClipSharded>(group_.options(), alone() ? gradients_ : gradient_shards_, *settings_.max_norm);
  clip_ = clip.get();
  part_ = std::move(clip);
  stage_ = Stage::clip;
}

Status FsdpStep::apply() {
  part_.reset();
  if (alone()) {
    layout_.emplace(parameters_, 1);
    stage_ = Stage::done;
    return apply_(gradients_, parameters_);
  }
  parameter_shards_ = layout_->shard(parameters_, group_.options().rank);
  if (Status status = apply_(gradient_shards_, parameter_shards_); !status.ok()) return status;
  residuals_.commit();
  stage_ = Stage::gather;
  part_.reset(new ShardMove(ShardMove::gather(mover_, gathers_, parameter_shards_, parameters_)));
  return {};
}

}  // namespace ringlet
