#include "native/shared_group.hpp"

#include <algorithm>
#include <ringlet/trace.hpp>
#include <string>
#include <utility>

#include "core/base/refuse.hpp"
#include "native/duration.hpp"
#include "native/open_worlds.hpp"

namespace ringlet::native {

namespace {

LinkInfo to_info(int peer, const LinkReport& report) {
  constexpr std::string_view kKinds[]{"unknown", "wired", "wireless"};
  LinkInfo info;
  info.peer = peer;
  info.medium = report.medium;
  info.cipher = report.cipher;
  info.own_address = report.own_name;
  info.peer_address = report.peer_name;
  info.own_interface = report.dialled ? report.path.dialler_interface : report.path.acceptor_interface;
  info.peer_interface = report.dialled ? report.path.acceptor_interface : report.path.dialler_interface;
  info.kind = kKinds[static_cast<std::size_t>(report.path.kind)];
  info.tried = static_cast<int>(report.path.tried);
  info.round_trip = std::chrono::nanoseconds(report.path.round_trip_ns);
  if (report.path.byte_ps > 0) info.bytes_per_second = 1e12 / static_cast<double>(report.path.byte_ps);
  return info;
}

template <class Task>
Status apply(const CallOptions& call, Result<Task>& task) {
  return task.ok() ? check_call(call, task.value().timeout) : task.status();
}

/// `end` may run when the group is gone, but not the world.
Interruption interruption_of(const NativeWorld& native, World& world) {
  if (!native.config().interrupted) return {};
  // Counted here: what `end` would end may have ended by then for another reason, after which a training would go on.
  auto is_wanted = [asked = native.config().interrupted, interruptions = native.start().interruptions] {
    if (!asked()) return false;
    ++*interruptions;
    return true;
  };
  return {std::move(is_wanted), [&world] {
            const int rank = world.options().rank;
            world.fail({Errc::cancelled, "rank " + std::to_string(rank) + " was interrupted while it waited", rank});
          }};
}

/// Whether another rank of this group may read this one's memory.
bool may_be_read(const WorldConfig& config, const WorldOptions& group) {
  if (!config.peer_memory || group.machines.empty()) return false;
  return std::count(group.machines.begin(), group.machines.end(), group.machines[static_cast<std::size_t>(group.rank)]) > 1;
}

void finish(LoopDriver& driver, WorkState& state, const Status& status) {
  if (status.ok()) state.packing.write_back();
  state.status = status;
  driver.set(state.done);
}

}  // namespace

Status check_call(const CallOptions& call, Duration& timeout) {
  if (call.stream.id >= GroupEngine::kMaxStreams)
    return {Errc::invalid_argument, "stream " + std::to_string(call.stream.id) + " does not exist; streams are numbered 0 to " +
                                        std::to_string(GroupEngine::kMaxStreams - 1)};
  if (!call.timeout) return {};
  if (call.timeout->count() <= 0)
    return {Errc::invalid_argument, "a timeout of " + std::to_string(call.timeout->count()) + " ms; it must be positive"};
  timeout = duration_of(*call.timeout);
  return {};
}

SharedGroup::SharedGroup(std::shared_ptr<NativeWorld> world) : SharedGroup(world, world->core(), world->core().group()) {}

SharedGroup::SharedGroup(std::shared_ptr<NativeWorld> world, ringlet::World& core, GroupEngine& engine)
    : world_(std::move(world)),
      core_(core),
      driver_(world_->driver()),
      engine_(engine),
      interruption_(interruption_of(*world_, core)),
      may_be_read_(may_be_read(world_->config(), engine.options())) {}

SharedGroup::~SharedGroup() {
  if (driver().is_inherited()) {
    keep_for_ever(world_);
    return;
  }
  // Left in the background, because another thread may hold the loop and wait for a rank that waits for this one.
  const auto leave = [&core = core_, &driver = driver(), &engine = engine_] {
    core.leave(engine);
    driver.background_done();
  };
  try {
    driver().run_in_background(leave);
  } catch (...) {
    driver().give_up(std::current_exception());
  }
}

void SharedGroup::count_use(const CollectiveTask& task) {
  count_use(task.input);
  if (task.output.data() != task.input.data()) count_use(task.output);
}

void SharedGroup::count_use(ConstBytes buffer) {
  if (!may_be_read_ || !ReusedBuffers::is_long(buffer)) return;
  // Before the lock, which another thread may have held when this process was forked.
  driver_.check();
  world_->reused_buffers().used(buffer);
}

template <class Task, class Give>
Work SharedGroup::start_task(const CallOptions& call, Result<Task> task, Packing packing, Give give) {
  auto state = std::make_shared<WorkState>();
  if (Status status = apply(call, task); !status.ok()) {
    state->status = std::move(status);
    driver().set(state->done);
    return {shared_from_this(), std::move(state)};
  }
  count_use(task.value());
  state->packing = std::move(packing);
  task.value().completion = [state, &driver = driver()](const Status& status) {
    driver.background_done();
    finish(driver, *state, status);
  };
  driver().run_in_background([give, value = std::move(task).value()]() mutable { give(std::move(value)); },
                             call.waits_at_once ? LoopDriver::Next::caller : LoopDriver::Next::helper);
  return {shared_from_this(), std::move(state)};
}

template <class Task, class Give>
void SharedGroup::run_task(const CallOptions& call, Result<Task> task, Give give) {
  throw_if_failed(apply(call, task));
  const TraceSpan span("wait", SpanKind::wait);
  count_use(task.value());
  WorkState state;
  task.value().completion = [&driver = driver(), &state](const Status& status) { finish(driver, state, status); };
  driver().run_until([&] { give(std::move(task).value()); }, state.done, interruption_);
  throw_if_failed(state.status);
}

void SharedGroup::poll_interruption() {
  if (interruption_.is_wanted && interruption_.is_wanted()) driver().run(interruption_.end);
}

Status SharedGroup::failure_of_driver() const {
  try {
    driver_.check();
  } catch (const Error& error) {
    return error.status();
  } catch (...) {
    // Another exception than memory's would be told by the calls themselves.
  }
  return {Errc::io_error, "memory ran out, so this rank has left its group"};
}

Work SharedGroup::start(const CallOptions& call, Result<CollectiveTask> task, Packing packing) {
  return start_task(call, std::move(task), std::move(packing),
                    [this, id = call.stream.id](CollectiveTask value) { engine_.start(id, std::move(value)); });
}

Work SharedGroup::start_send(const CallOptions& call, Result<MessageTask> task, Packing packing) {
  return start_task(call, std::move(task), std::move(packing),
                    [this, id = call.stream.id](MessageTask value) { engine_.send(id, std::move(value)); });
}

Work SharedGroup::start_receive(const CallOptions& call, Result<MessageTask> task, Packing packing) {
  return start_task(call, std::move(task), std::move(packing),
                    [this, id = call.stream.id](MessageTask value) { engine_.receive(id, std::move(value)); });
}

void SharedGroup::run(const CallOptions& call, Result<CollectiveTask> task) {
  run_task(call, std::move(task), [this, id = call.stream.id](CollectiveTask value) { engine_.start(id, std::move(value)); });
}

void SharedGroup::run_send(const CallOptions& call, Result<MessageTask> task) {
  run_task(call, std::move(task), [this, id = call.stream.id](MessageTask value) { engine_.send(id, std::move(value)); });
}

void SharedGroup::run_receive(const CallOptions& call, Result<MessageTask> task) {
  run_task(call, std::move(task), [this, id = call.stream.id](MessageTask value) { engine_.receive(id, std::move(value)); });
}

void SharedGroup::fail_world(std::string_view why) noexcept {
  try {
    const int rank = engine_.members().world_rank(options().rank);
    driver().run([&] { core_.fail({Errc::io_error, "rank " + std::to_string(rank) + ": " + std::string(why), rank}); });
  } catch (...) {
    driver().give_up(std::current_exception());
  }
}

void SharedGroup::fail_for_violation(const Status& violation) {
  driver().run([&] {
    // This rank itself has no session.
    if (core_.has_session(violation.rank())) return core_.on_violation(violation.rank(), violation.text());
    core_.fail(violation);
  });
  throw ProtocolError(violation);
}

void SharedGroup::run_own(const CallOptions& call, Result<CollectiveTask> task) {
  run_task(call, std::move(task), [this](CollectiveTask value) { engine_.start(GroupEngine::kOwnStream, std::move(value)); });
}

Topology SharedGroup::topology() {
  Topology found;
  driver().run([&] { found = engine_.topology_of_last_change(); });
  return found;
}

std::string SharedGroup::door() const { return elastic() ? to_string(world_->door()->address()) : ""; }

std::uint64_t SharedGroup::lineage() {
  std::uint64_t found = 0;
  driver().run([&] { found = world_->lineage(); });
  return found;
}

bool SharedGroup::has_joined() const { return world_->start().entry == WorldEntry::join && epoch() == world_->first_epoch(); }

std::string_view SharedGroup::links() {
  std::string_view found;
  driver().run([&] { found = engine_.links(); });
  return found;
}

std::vector<LinkInfo> SharedGroup::link_info() {
  std::vector<LinkInfo> found;
  Status failure;
  driver().run([&] {
    failure = core_.failure();
    if (!failure.ok()) return;
    for (int peer = 0; peer < options().size; ++peer)
      if (peer != options().rank) found.push_back(to_info(peer, core_.link_with(engine_.members().world_rank(peer))));
  });
  throw_if_failed(failure);
  return found;
}

/// Returns null where this rank is in none of the groups that are made.
template <class Task, class Give>
std::shared_ptr<SharedGroup> SharedGroup::make_part(const CallOptions& call, Task task, Give give) {
  task.timeout = options().operation_timeout;
  throw_if_failed(check_call(call, task.timeout));
  WorkState state;
  GroupEngine* made = nullptr;
  task.completion = [&](const Status& status, GroupEngine* engine) {
    made = engine;
    finish(driver(), state, status);
  };
  driver().run_until([&] { give(std::move(task)); }, state.done, interruption_);
  throw_if_failed(state.status);
  return made != nullptr ? std::make_shared<SharedGroup>(world_, core_, *made) : nullptr;
}

std::shared_ptr<SharedGroup> SharedGroup::split(const CallOptions& call, int color, int key) {
  SplitTask task;
  task.color = color;
  task.key = key;
  return make_part(call, std::move(task), [&](SplitTask given) { core_.split(engine_, call.stream.id, std::move(given)); });
}

std::shared_ptr<SharedGroup> SharedGroup::create(const CallOptions& call, std::vector<int> ranks, int tag) {
  throw_if_failed(check_creation(ranks, tag, options()));
  CreateTask task;
  task.ranks = std::move(ranks);
  task.tag = tag;
  return make_part(call, std::move(task), [&](CreateTask given) { core_.create(engine_, std::move(given)); });
}

Status SharedGroup::world_failure() {
  Status failure;
  driver().run([&] { failure = core_.failure(); });
  return failure;
}

bool SharedGroup::run_unless_failed(const CallOptions& call, Result<CollectiveTask> task) {
  const int before = interruptions();
  try {
    run_own(call, std::move(task));
    return true;
  } catch (const Error&) {
    if (world_has_failed() && interruptions() == before) return false;
    throw;
  }
}

void SharedGroup::refuse_unless_elastic() const {
  if (!elastic()) refuse("the group is not elastic; set RINGLET_ELASTIC=on, or the option elastic, on all ranks");
  if (world_->has_left()) refuse("this rank has left this world");
}

void SharedGroup::refuse_unless_whole_world(const char* call) const {
  if (&engine_ != &core_.group()) refuse(std::string(call) + " is for the group of all ranks, not for one that split() made");
}

void SharedGroup::revoke() {
  refuse_unless_elastic();
  driver().run([&] { core_.revoke(); });
}

void SharedGroup::leave() {
  driver_.check();
  growth_.drop();
  if (world_->door()) world_->door()->shut();
  world_->leave();
}

}  // namespace ringlet::native

namespace ringlet {

Work& Work::operator=(Work&& other) noexcept {
  if (this != &other) {
    Work old = std::move(*this);  // its destructor waits
    group_ = std::move(other.group_);
    state_ = std::move(other.state_);
  }
  return *this;
}

Work::~Work() {
  if (state_) group_->driver().wait(state_->done, std::nullopt);
}

void Work::wait() {
  if (!state_) return;
  const TraceSpan span("wait", SpanKind::wait);
  if (!group_->driver().wait(state_->done, std::nullopt, group_->interruption())) group_->driver().check();
  throw_if_failed(state_->status);
}

bool Work::wait_for(std::chrono::milliseconds timeout) {
  if (!state_) return true;
  const TraceSpan span("wait", SpanKind::wait);
  if (!group_->driver().wait(state_->done, native::duration_of(timeout), group_->interruption())) {
    group_->driver().check();
    return false;
  }
  throw_if_failed(state_->status);
  return true;
}

bool Work::done() const { return !state_ || state_->done.is_set(); }

Status Work::status() {
  if (!state_) return {};
  if (!group_->driver().wait(state_->done, std::nullopt, group_->interruption())) return group_->failure_of_driver();
  return state_->status;
}

void Work::on_done(std::function<void(const Status&)> function) {
  if (!state_) {
    native::Calls calls;
    calls.emplace_back([function = std::move(function)] { function({}); });
    native::start_dispatcher();
    return native::dispatch(std::move(calls));
  }
  group_->driver().when_done(state_->done, [group = group_, state = state_, function = std::move(function)] {
    function(state->done.is_set() ? state->status : group->failure_of_driver());
  });
}

}  // namespace ringlet
