// The one file of this folder that catches: trees and optimizers throw at their callers.
#include <cmath>
#include <optional>
#include <ringlet/error.hpp>

#include "core/engine/procedure_run.hpp"
#include "core/gradients/tree_average.hpp"
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

/// What `call`, which may throw, says in the end.
template <class Call>
Status status_of(Call call) {
  try {
    call();
    return {};
  } catch (const Error& error) {
    return error.status();
  }
}

Status no_object(const char* what) { return {Errc::invalid_argument, std::string("this is no ") + what + ", or it has been released"}; }

Status check_dtype(const char* name, int32_t dtype) {
  if (dtype == -1 || is_valid(static_cast<DType>(dtype))) return {};
  return {Errc::invalid_argument, std::string(name) + " is " + std::to_string(dtype) + ", which is no dtype"};
}

std::optional<DType> optional_dtype(int32_t dtype) { return dtype == -1 ? std::nullopt : std::optional(static_cast<DType>(dtype)); }

std::optional<double> optional_number(double value) { return std::isnan(value) ? std::nullopt : std::optional(value); }

int32_t run(int32_t stream, std::shared_ptr<Procedure> procedure, std::vector<GroupEngine*> groups, Completion completion) {
  run_procedure(browser::loop(), std::move(procedure), std::move(groups), static_cast<std::uint16_t>(stream), std::move(completion));
  return browser::report({});
}

}  // namespace

int32_t ringlet_tree() {
  browser::report({});
  return objects().add(std::make_shared<Tree>());
}

int32_t ringlet_tree_add(int32_t tree, const char* name, int32_t dtype, void* data, const uint32_t* shape, int32_t axes) {
  const auto found = objects().find<Tree>(tree);
  if (found == nullptr) return browser::report(no_object("tree"));
  const std::vector<std::int64_t> extents(shape, shape + std::max(axes, 0));
  return browser::report(
      status_of([&] { found->add(name, TensorView(data, static_cast<DType>(dtype), Shape(std::span<const std::int64_t>(extents)))); }));
}

int32_t ringlet_average_gradients(int32_t ticket, int32_t group, int32_t stream, int32_t tree, double all_reduce_size,
                                  int32_t communication_dtype, double weight) {
  const browser::OperationOptions call{ticket, group, stream, 0};
  const auto entry = browser::check(call);
  if (!entry.ok()) return browser::report(entry.status());
  const auto gradients = objects().find<Tree>(tree);
  if (gradients == nullptr) return browser::report(no_object("tree"));
  if (Status status = check_dtype("communication_type", communication_dtype); !status.ok()) return browser::report(status);
  AverageOptions options;
  options.all_reduce_size = static_cast<std::int64_t>(all_reduce_size);
  options.communication_type = optional_dtype(communication_dtype);
  options.weight = optional_number(weight);
  options.stream.id = static_cast<std::uint16_t>(stream);
  if (Status status = Averager::check(options); !status.ok()) return browser::report(status);
  GroupEngine& engine = entry.value()->engine;
  auto average = std::make_shared<TreeAverage>(engine, *entry.value()->agreements, *gradients, options);
  // The agreements live as long as what uses them.
  return run(stream, std::move(average), {&engine},
             [ticket, kept = entry.value()->agreements](const Status& status) { browser::tell_completed(ticket, status); });
}

int32_t ringlet_optimizer(const char* formula, double learning_rate, const double* numbers, int32_t count, int32_t state_dtype) {
  if (Status status = check_dtype("state_dtype", state_dtype); !status.ok()) return browser::report_handle(status);
  std::shared_ptr<Optimizer> optimizer;
  const Status status = status_of([&] {
    optimizer = browser::make_optimizer(formula, learning_rate, {numbers, static_cast<std::size_t>(count)}, optional_dtype(state_dtype));
  });
  if (!status.ok()) return browser::report_handle(status);
  if (optimizer == nullptr) return browser::report_handle({Errc::invalid_argument, std::string("there is no optimizer ") + formula});
  browser::report({});
  return objects().add(std::move(optimizer));
}

int32_t ringlet_optimizer_set_learning_rate(int32_t optimizer, double learning_rate) {
  const auto found = objects().find<Optimizer>(optimizer);
  if (found == nullptr) return browser::report(no_object("optimizer"));
  return browser::report(status_of([&] { found->set_learning_rate(learning_rate); }));
}

int32_t ringlet_optimizer_apply(int32_t optimizer, int32_t gradients, int32_t parameters) {
  const auto found = objects().find<Optimizer>(optimizer);
  const auto from = objects().find<Tree>(gradients), to = objects().find<Tree>(parameters);
  if (found == nullptr) return browser::report(no_object("optimizer"));
  if (from == nullptr || to == nullptr) return browser::report(no_object("tree"));
  return browser::report(status_of([&] { found->apply_gradients(*from, *to); }));
}

int32_t ringlet_fsdp(int32_t group, int32_t replicas, double communication_size, double max_norm, int32_t reduce_dtype,
                     const double* shard_weights) {
  const auto sharding = browser::check({0, group, 0, 0});
  if (!sharding.ok()) return browser::report_handle(sharding.status());
  auto* const same_shard = replicas == 0 ? nullptr : browser::registry().find_group(replicas);
  if (replicas != 0 && same_shard == nullptr) return browser::report_handle(no_object("group"));
  if (Status status = check_dtype("reduce_dtype", reduce_dtype); !status.ok()) return browser::report_handle(status);
  GroupEngine& engine = sharding.value()->engine;
  const int ranks = engine.options().size;
  FsdpSettings settings;
  settings.communication_size = static_cast<std::int64_t>(communication_size);
  settings.max_norm = optional_number(max_norm);
  settings.reduce_dtype = optional_dtype(reduce_dtype);
  if (shard_weights != nullptr) settings.shard_weights.assign(shard_weights, shard_weights + ranks);
  if (Status status = FsdpStep::check(settings, ranks); !status.ok()) return browser::report_handle(status);
  auto fsdp = std::make_shared<Fsdp>();
  fsdp->agreements = sharding.value()->agreements;
  fsdp->groups.push_back(group);
  if (same_shard != nullptr) fsdp->groups.push_back(replicas);
  fsdp->step = std::make_shared<FsdpStep>(engine, *fsdp->agreements, same_shard == nullptr ? nullptr : &same_shard->engine.options(),
                                          std::move(settings));
  browser::report({});
  return objects().add(std::move(fsdp));
}

int32_t ringlet_fsdp_apply(int32_t ticket, int32_t fsdp, int32_t stream, int32_t gradients, int32_t parameters, int32_t optimizer) {
  const auto found = objects().find<Fsdp>(fsdp);
  const auto from = objects().find<Tree>(gradients), to = objects().find<Tree>(parameters);
  const auto update = objects().find<Optimizer>(optimizer);
  if (found == nullptr) return browser::report(no_object("fsdp"));
  if (from == nullptr || to == nullptr) return browser::report(no_object("tree"));
  if (update == nullptr) return browser::report(no_object("optimizer"));
  if (found->busy) return browser::report({Errc::invalid_argument, "the last step of this fsdp has not completed"});
  std::vector<GroupEngine*> groups;
  for (const int32_t group : found->groups) {
    const auto entry = browser::check({ticket, group, stream, 0});
    if (!entry.ok()) return browser::report(entry.status());
    groups.push_back(&entry.value()->engine);
  }
  found->busy = true;
  found->step->begin(
      *from, *to, [update](const Tree& shards, const Tree& values) { return status_of([&] { update->apply_gradients(shards, values); }); });
  return run(stream, found->step, std::move(groups), [ticket, found](const Status& status) {
    found->busy = false;
    browser::tell_completed(ticket, status);
  });
}

double ringlet_fsdp_norm(int32_t fsdp) {
  const auto found = objects().find<Fsdp>(fsdp);
  return found == nullptr ? NAN : found->step->norm().value_or(NAN);
}

int32_t ringlet_object_release(int32_t object) {
  return browser::report(objects().remove(object) ? Status() : no_object("tree, optimizer or fsdp"));
}
