#include <memory>
#include <vector>

#include "core/elastic/signals.hpp"
#include "core/engine/requests.hpp"
#include "core/plan/placement.hpp"
#include "wasm/cpp/browser_world.hpp"
#include "wasm/cpp/exports.hpp"
#include "wasm/cpp/registry.hpp"

using namespace ringlet;
using browser::BrowserWorld;
using browser::registry;

namespace {

Status no_world() { return {Errc::invalid_argument, "this world has been left"}; }
Status no_group() { return {Errc::invalid_argument, "this group has been left, or its world has ended"}; }

/// Returns null where there is no such world, or it is being left.
World* joined(int32_t world) {
  BrowserWorld* const found = registry().find_world(world);
  return found == nullptr || found->closing() ? nullptr : found->core();
}

Duration time_of(int32_t milliseconds, Duration otherwise) { return milliseconds > 0 ? Duration::milliseconds(milliseconds) : otherwise; }

}  // namespace

int32_t ringlet_join(int32_t ticket, const char* host, int32_t port, const char* token, const char* name, int32_t connect_timeout_ms,
                     int32_t operation_timeout_ms, int32_t encrypt) {
  if (port < 1 || port > 65'535)
    return browser::report_handle({Errc::invalid_argument, "port " + std::to_string(port) + "; ports are 1 to 65535"});
  browser::JoinOptions options;
  options.coordinator = {host, static_cast<std::uint16_t>(port)};
  options.token = token;
  options.encrypt = encrypt < 0 ? !options.token.empty() : encrypt != 0;
  options.name = name;
  options.timeout = time_of(connect_timeout_ms, options.timeout);
  options.operation_timeout = time_of(operation_timeout_ms, options.operation_timeout);
  const int32_t handle = registry().add_world();
  BrowserWorld& world = *registry().find_world(handle);
  world.join(options, [ticket, &world](const Status& status) {
    browser::tell_completed(ticket, status, status.ok() ? registry().add_group(world, world.core()->group()) : 0);
  });
  browser::report({});
  return handle;
}

int32_t ringlet_world_of_one() {
  const int32_t handle = registry().add_world();
  registry().find_world(handle)->make_core(browser::world_options());
  browser::report({});
  return handle;
}

int32_t ringlet_world_group(int32_t world) {
  BrowserWorld* const found = registry().find_world(world);
  if (found == nullptr || found->core() == nullptr) return browser::report_handle(no_world());
  browser::report({});
  return registry().add_group(*found, found->core()->group());
}

int32_t ringlet_leave(int32_t ticket, int32_t world) {
  BrowserWorld* const found = registry().find_world(world);
  if (found == nullptr || found->closing()) return browser::report(no_world());
  found->close([ticket, world] {
    browser::tell_completed(ticket, {});
    // The world must not be destroyed inside its own callback.
    browser::loop().defer([world] { registry().remove_world(world); });
  });
  return browser::report({});
}

double ringlet_bytes_sent(int32_t world) {
  BrowserWorld* const found = registry().find_world(world);
  return found == nullptr ? 0 : found->network().traffic().sent;
}

double ringlet_bytes_received(int32_t world) {
  BrowserWorld* const found = registry().find_world(world);
  return found == nullptr ? 0 : found->network().traffic().received;
}

double ringlet_world_epoch(int32_t world) {
  BrowserWorld* const found = registry().find_world(world);
  return found == nullptr ? 0 : found->epoch();
}

const char* ringlet_world_lineage(int32_t world) {
  static std::string text;
  BrowserWorld* const found = registry().find_world(world);
  text = std::to_string(found == nullptr ? 0 : found->lineage());
  return text.c_str();
}

const char* ringlet_world_door(int32_t world, int32_t rank) {
  static std::string text;
  text.clear();
  const World* const core = joined(world);
  if (core != nullptr && rank >= 0 && rank < core->options().size && core->door(rank).port != 0) text = to_string(core->door(rank));
  return text.c_str();
}

int32_t ringlet_revoke(int32_t world) {
  World* const core = joined(world);
  if (core == nullptr) return browser::report(no_world());
  core->revoke();
  return browser::report({});
}

int32_t ringlet_world_failure(int32_t world) {
  const World* const core = joined(world);
  return browser::report(core == nullptr ? no_world() : core->failure());
}

int32_t ringlet_group_rank(int32_t group) {
  const auto* found = registry().find_group(group);
  return found == nullptr ? -1 : found->engine.options().rank;
}

int32_t ringlet_group_size(int32_t group) {
  const auto* found = registry().find_group(group);
  return found == nullptr ? -1 : found->engine.options().size;
}

int32_t ringlet_group_world_rank(int32_t group, int32_t rank) {
  const auto* found = registry().find_group(group);
  if (found == nullptr || rank < 0 || rank >= found->engine.options().size) return -1;
  return found->engine.members().world_rank(rank);
}

int32_t ringlet_group_along_ring(int32_t group, int32_t rank, int32_t offset) {
  const auto* found = registry().find_group(group);
  if (found == nullptr || rank < 0 || rank >= found->engine.options().size) return -1;
  const WorldOptions& options = found->engine.options();
  return options.topology.along_ring(rank, offset, options.size);
}

const char* ringlet_group_placement(int32_t group) {
  static std::string text;
  const auto* found = registry().find_group(group);
  if (found == nullptr) return nullptr;
  const WorldOptions& options = found->engine.options();
  text = describe_placement(options.size, found->engine.topology_of_last_change(), options.limits, options.placement);
  return text.c_str();
}

int32_t ringlet_vote(int32_t ticket, int32_t group, int32_t timeout_ms, int32_t mine, int32_t trains) {
  const browser::OperationOptions options{ticket, group, 0, timeout_ms};
  const auto found = browser::check(options);
  if (!found.ok()) return browser::report(found.status());
  GroupEngine& engine = found.value()->engine;
  const auto vote = std::make_shared<std::vector<std::int32_t>>(1, mine != 0 ? 1 : 0);
  if (trains != 0) {
    // Nobody knocks at a guest.
    const Signals::Numbers nothing = Signals{}.numbers();
    vote->insert(vote->end(), nothing.begin(), nothing.end());
  }
  auto task =
      for_purpose(Purpose::agreement, make_all_reduce(ReduceOp::min, ConstTensorView(*vote), TensorView(*vote), 1, engine.options()));
  if (!task.ok()) return browser::report(task.status());
  task.value().timeout = browser::timeout_of(options, *found.value());
  task.value().completion = [ticket, vote](const Status& status) { browser::tell_completed(ticket, status, vote->front()); };
  engine.start(GroupEngine::kOwnStream, std::move(task).value());
  return browser::report({});
}

int32_t ringlet_split(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t color, int32_t key) {
  const browser::OperationOptions options{ticket, group, stream, timeout_ms};
  const auto found = browser::check(options);
  if (!found.ok()) return browser::report(found.status());
  BrowserWorld& world = found.value()->world;
  SplitTask task;
  task.color = color;
  task.key = key;
  task.timeout = browser::timeout_of(options, *found.value());
  task.completion = [ticket, &world](const Status& status, GroupEngine* made) {
    browser::tell_completed(ticket, status, made == nullptr ? 0 : registry().add_group(world, *made));
  };
  world.core()->split(found.value()->engine, static_cast<std::uint16_t>(stream), std::move(task));
  return browser::report({});
}

int32_t ringlet_group_leave(int32_t group) {
  const auto* found = registry().find_group(group);
  if (found == nullptr) return browser::report(no_group());
  if (!found->engine.idle())
    return browser::report({Errc::invalid_argument, "an operation of this group is pending; wait for it before leaving the group"});
  found->world.core()->leave(found->engine);
  registry().remove_group(group);
  return browser::report({});
}

const char* ringlet_group_algorithm(int32_t group, const char* operation, size_t bytes) {
  const auto* found = registry().find_group(group);
  if (found == nullptr) return nullptr;
  const WorldOptions& options = found->engine.options();
  const auto kind = find_collective(operation);
  if (!kind || *kind == CollectiveKind::barrier) return nullptr;
  Call call;
  call.kind = *kind;
  call.dtype = DType::f32;
  const Topology& topology = found->engine.topology_of_last_change();
  return name_of(choose_algorithm(call, bytes, options.size, topology, options.limits, options.placement)).data();
}
