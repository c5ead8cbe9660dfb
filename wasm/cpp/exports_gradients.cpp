#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/arithmetic.hpp"
#include "core/base/checked_shape.hpp"
#include "core/base/refuse.hpp"
#include "core/elastic/state_sync.hpp"
#include "core/engine/procedure_run.hpp"
#include "core/gradients/averager.hpp"
#include "wasm/cpp/exports.hpp"
#include "wasm/cpp/objects.hpp"
#include "wasm/cpp/optimizers.hpp"
#include "wasm/cpp/registry.hpp"

using namespace ringlet;
using browser::Fsdp;

namespace {

browser::Objects& objects() {
  static browser::Objects all;
  return all;
}

Status no_object(const char* what) { return invalid(std::string("this is no ") + what + ", or it has been released"); }

/// Checks an optional dtype; -1 means that none was given.
Status check_dtype(const char* name, int32_t dtype) {
  if (dtype == -1 || from_number<DType>(dtype)) return {};
  return invalid(std::string(name) + " is " + std::to_string(dtype) + ", which is no dtype");
}

std::optional<DType> optional_dtype(int32_t dtype) { return from_number<DType>(dtype); }

std::optional<double> optional_number(double value) { return std::isnan(value) ? std::nullopt : std::optional(value); }

/// Converts a number of bytes from JavaScript's numbers, which are doubles.
std::int64_t bytes_of(double value) {
  constexpr double kMax = 1e15;
  return static_cast<std::int64_t>(std::isnan(value) ? 0 : std::clamp(value, -1.0, kMax));
}

Result<TensorView> tensor_of(const std::string& name, int32_t dtype, void* data, const uint32_t* shape, int32_t axes) {
  const auto known = from_number<DType>(dtype);
  if (!known) return invalid("'" + name + "' is of the unknown dtype number " + std::to_string(dtype));
  if (axes < 0 || axes > static_cast<int32_t>(Shape::kMaxAxes))
    return invalid("'" + name + "' has " + std::to_string(axes) + " axes; at most " + std::to_string(Shape::kMaxAxes) + " are possible");
  const std::vector<std::int64_t> extents(shape, shape + axes);
  const auto checked = checked_shape(extents);
  if (!checked.ok()) return checked.status();
  if (!checked_bytes(extents, size_of(*known))) return invalid("'" + name + "' has the impossible shape " + to_string(checked.value()));
  const TensorView view(data, *known, checked.value());
  if (data == nullptr && view.count() > 0) return invalid("'" + name + "' is null but has " + std::to_string(view.count()) + " elements");
  return view;
}

/// The wire of this number: a dtype's, or one of blocks.
Result<std::optional<Wire>> optional_wire(const char* name, int32_t wire, int32_t feedback, double least_elements) {
  if (const auto format = from_number<BlockFormat>(wire - kFirstBlockFormat))
    return std::optional(Wire::in_blocks(
        *format, {.feedback = feedback != 0, .least_elements = static_cast<std::size_t>(bytes_of(std::max(least_elements, 0.0)))}));
  if (Status status = check_dtype(name, wire); !status.ok()) return status;
  return std::optional<Wire>(optional_dtype(wire));
}

/// Returns the groups of an FSDP object, and fails if one of them has been left since the object was made.
Result<std::vector<GroupEngine*>> groups_of(const Fsdp& fsdp, int32_t stream) {
  std::vector<GroupEngine*> groups;
  for (const int32_t handle : fsdp.groups) {
    const auto group = browser::check({0, handle, stream, 0});
    if (!group.ok()) return group.status();
    groups.push_back(&group.value()->engine);
  }
  return groups;
}

}  // namespace

int32_t ringlet_tree() {
  browser::report({});
  return objects().add(std::make_shared<Tree>());
}

int32_t ringlet_tree_add(int32_t tree, const char* name, int32_t dtype, void* data, const uint32_t* shape, int32_t axes) {
  const auto found = objects().find<Tree>(tree);
  if (found == nullptr) return browser::report(no_object("tree"));
  if (Status status = found->accepts(name); !status.ok()) return browser::report(status);
  const auto values = tensor_of(name, dtype, data, shape, axes);
  if (values.ok()) found->add(name, values.value());
  return browser::report(values.status());
}

int32_t ringlet_average_gradients(int32_t ticket, int32_t group, int32_t stream, int32_t tree, double all_reduce_size, int32_t wire,
                                  double weight, double total_weight, int32_t feedback, double least_elements) {
  const auto entry = browser::check({ticket, group, stream, 0});
  if (!entry.ok()) return browser::report(entry.status());
  const auto gradients = objects().find<Tree>(tree);
  if (gradients == nullptr) return browser::report(no_object("tree"));
  const auto communication_type = optional_wire("communication_type", wire, feedback, least_elements);
  if (!communication_type.ok()) return browser::report(communication_type.status());
  AverageOptions options;
  options.all_reduce_size = bytes_of(all_reduce_size);
  options.communication_type = communication_type.value();
  options.weight = optional_number(weight);
  if (Status status = Averager::check(options); !status.ok()) return browser::report(status);
  GroupEngine& engine = entry.value()->engine;
  const auto agreements = entry.value()->agreements;
  run_procedure(browser::loop(), std::make_shared<TreeAverage>(engine, *agreements, *gradients, options, optional_number(total_weight)),
                {&engine}, static_cast<std::uint16_t>(stream),
                [ticket, agreements](const Status& status) { browser::tell_completed(ticket, status); });
  return browser::report({});
}

int32_t ringlet_optimizer(const char* formula, double learning_rate, const double* numbers, int32_t count, int32_t state_dtype) {
  if (Status status = check_dtype("state_dtype", state_dtype); !status.ok()) return browser::report_handle(status);
  auto optimizer = browser::make_optimizer(formula, learning_rate, {numbers, static_cast<std::size_t>(count)}, optional_dtype(state_dtype));
  if (!optimizer.ok()) return browser::report_handle(optimizer.status());
  browser::report({});
  return objects().add(std::move(optimizer).value());
}

int32_t ringlet_optimizer_set_learning_rate(int32_t optimizer, double learning_rate) {
  const auto found = objects().find<browser::AnyOptimizer>(optimizer);
  return browser::report(found == nullptr ? no_object("optimizer") : found->try_set_learning_rate(learning_rate));
}

int32_t ringlet_optimizer_apply(int32_t optimizer, int32_t gradients, int32_t parameters) {
  const auto found = objects().find<browser::AnyOptimizer>(optimizer);
  const auto from = objects().find<Tree>(gradients), to = objects().find<Tree>(parameters);
  if (found == nullptr) return browser::report(no_object("optimizer"));
  if (from == nullptr || to == nullptr) return browser::report(no_object("tree"));
  return browser::report(found->try_apply_gradients(*from, *to));
}

double ringlet_optimizer_state_bytes(int32_t optimizer) {
  const auto found = objects().find<browser::AnyOptimizer>(optimizer);
  return found == nullptr ? NAN : static_cast<double>(found->state_bytes());
}

int32_t ringlet_fsdp(int32_t group, int32_t replicas, double communication_size, double max_norm, int32_t reduce_dtype,
                     const double* shard_weights, int32_t feedback, double least_elements) {
  auto fsdp = std::make_shared<Fsdp>();
  fsdp->groups.push_back(group);
  if (replicas != 0) fsdp->groups.push_back(replicas);
  const auto groups = groups_of(*fsdp, 0);
  if (!groups.ok()) return browser::report_handle(groups.status());
  const auto wire = optional_wire("reduce_dtype", reduce_dtype, feedback, least_elements);
  if (!wire.ok()) return browser::report_handle(wire.status());
  GroupEngine& engine = *groups.value().front();
  const int ranks = engine.options().size;
  FsdpSettings settings;
  settings.communication_size = bytes_of(communication_size);
  settings.max_norm = optional_number(max_norm);
  settings.reduce_dtype = wire.value();
  if (shard_weights != nullptr) settings.shard_weights.assign(shard_weights, shard_weights + ranks);
  if (Status status = FsdpStep::check(settings, ranks); !status.ok()) return browser::report_handle(status);
  fsdp->agreements = browser::registry().find_group(group)->agreements;
  fsdp->step = std::make_shared<FsdpStep>(engine, *fsdp->agreements, replicas == 0 ? nullptr : &groups.value().back()->options(),
                                          std::move(settings));
  browser::report({});
  return objects().add(std::move(fsdp));
}

int32_t ringlet_fsdp_apply(int32_t ticket, int32_t fsdp, int32_t stream, int32_t gradients, int32_t parameters, int32_t optimizer) {
  const auto found = objects().find<Fsdp>(fsdp);
  const auto from = objects().find<Tree>(gradients), to = objects().find<Tree>(parameters);
  const auto update = objects().find<browser::AnyOptimizer>(optimizer);
  if (found == nullptr) return browser::report(no_object("fsdp"));
  if (from == nullptr || to == nullptr) return browser::report(no_object("tree"));
  if (update == nullptr) return browser::report(no_object("optimizer"));
  if (found->busy) return browser::report(invalid("this fsdp takes a step already; wait for it"));
  auto groups = groups_of(*found, stream);
  if (!groups.ok()) return browser::report(groups.status());
  found->step->begin(*from, *to, [update](const Tree& shards, const Tree& values) { return update->try_apply_gradients(shards, values); });
  found->busy = true;
  run_procedure(browser::loop(), found->step, std::move(groups).value(), static_cast<std::uint16_t>(stream),
                [ticket, found](const Status& status) {
                  found->busy = false;
                  browser::tell_completed(ticket, status);
                });
  return browser::report({});
}

double ringlet_fsdp_norm(int32_t fsdp) {
  const auto found = objects().find<Fsdp>(fsdp);
  return found == nullptr ? NAN : found->step->norm().value_or(NAN);
}

int32_t ringlet_sync(int32_t ticket, int32_t group, int32_t stream, int32_t tree, const char* values, int32_t lacks, double step) {
  const auto entry = browser::check({ticket, group, stream, 0});
  if (!entry.ok()) return browser::report_handle(entry.status());
  const auto state = objects().find<Tree>(tree);
  if (state == nullptr) return browser::report_handle(no_object("tree"));
  GroupEngine& engine = entry.value()->engine;
  const auto agreements = entry.value()->agreements;
  const Standing mine{lacks != 0, static_cast<std::uint64_t>(step)};
  const auto sync = std::make_shared<StateSync>(engine, *agreements, *state, values, mine);
  run_procedure(browser::loop(), sync, {&engine}, static_cast<std::uint16_t>(stream),
                [ticket, agreements](const Status& status) { browser::tell_completed(ticket, status); });
  browser::report({});
  return objects().add(sync);
}

int32_t ringlet_sync_takes(int32_t sync) {
  const auto found = objects().find<StateSync>(sync);
  return found != nullptr && found->takes() ? 1 : 0;
}

double ringlet_sync_step(int32_t sync) {
  const auto found = objects().find<StateSync>(sync);
  return found == nullptr ? NAN : static_cast<double>(found->plan().step);
}

const char* ringlet_sync_values(int32_t sync) {
  const auto found = objects().find<StateSync>(sync);
  return found == nullptr ? nullptr : found->values().c_str();
}

int32_t ringlet_object_release(int32_t object) {
  return browser::report(objects().remove(object) ? Status() : no_object("tree, optimizer, fsdp or sync"));
}
