#include "native/growth.hpp"

#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/refuse.hpp"
#include "core/elastic/begin_growth.hpp"
#include "core/engine/requests.hpp"
#include "native/hostfile.hpp"
#include "native/shared_group.hpp"
#include "native/this_process.hpp"

// How a group takes in ranks while it runs.
namespace ringlet::native {

namespace {

/// The processes of a growth are all there, so their meeting is a matter of some round trips.
constexpr Duration kFormingTimeout = Duration::seconds(10);
/// How soon a rank that waits for something of the next world notices that the present one has failed.
constexpr Duration kWatchInterval = Duration::milliseconds(10);
/// How long a rank that has switched waits for an agreement in the world before, which only others may still need.
constexpr auto kPatienceWithOthers = std::chrono::seconds(15);

}  // namespace

// --- the next world ---

Growth::Growth(WorldConfig next, Address coordinator) : stop_(next.stop) {
  if (next.options.rank == 0) next.meeting.on_listening = [progress = progress_](std::uint16_t port) { progress->set_port(port); };
  try {
    thread_ =
        std::thread([this, next = std::move(next), coordinator = std::move(coordinator)]() mutable { form(std::move(next), coordinator); });
  } catch (const std::system_error&) {
    progress_->fail();
  }
}

Growth::Growth() : stop_(std::make_shared<MeetingStop>()) { progress_->fail(); }

Growth::~Growth() {
  stop({Errc::cancelled, "the growth of the group was given up"});
  if (thread_.joinable()) thread_.join();
}

void Growth::form(WorldConfig next, const Address& coordinator) {
  try {
    meet_at(coordinator, next.reach, next.hosts, next.options.rank, next.meeting);
    world_ = std::make_shared<NativeWorld>(next);
    watch_world();
  } catch (const std::exception&) {
    // The processes that join are told why by their own meeting.
    progress_->fail();
  }
}

void Growth::watch_world() {
  world_->driver().run([&] {
    world_->core().set_failure_handler([progress = progress_](const Status&) { progress->fail(); });
    world_->core().failure().ok() ? progress_->met() : progress_->fail();
  });
}

void Growth::Progress::met() {
  const std::lock_guard lock(mutex);
  growth.met();
  changed.notify_all();
}

void Growth::Progress::fail() {
  const std::lock_guard lock(mutex);
  growth.fail();
  changed.notify_all();
}

void Growth::Progress::set_port(std::uint16_t to) {
  const std::lock_guard lock(mutex);
  port = to;
  changed.notify_all();
}

GrowthState Growth::state() {
  const std::lock_guard lock(progress_->mutex);
  return progress_->growth.state();
}

std::uint16_t Growth::await_port() {
  std::unique_lock lock(progress_->mutex);
  progress_->changed.wait(lock, [this] { return progress_->port || progress_->growth.state() == GrowthState::failed; });
  return progress_->growth.state() == GrowthState::failed ? 0 : progress_->port.value_or(0);
}

bool Growth::wait_for(std::chrono::milliseconds timeout) {
  std::unique_lock lock(progress_->mutex);
  return progress_->changed.wait_for(lock, timeout, [this] { return progress_->growth.state() != GrowthState::forming; });
}

std::shared_ptr<NativeWorld> Growth::take() {
  if (thread_.joinable()) thread_.join();
  return std::move(world_);
}

// --- the members' part ---

std::string SharedGroup::door() const { return world_->door() ? to_string(world_->door()->address()) : ""; }

std::uint64_t SharedGroup::lineage() {
  std::uint64_t found = 0;
  driver().run([&] { found = world_->lineage(); });
  return found;
}

bool SharedGroup::has_joined() const { return world_->config().joined && epoch() == world_->first_epoch(); }

int SharedGroup::waiting() { return world_->elastic() ? world_->door()->waiting() : 0; }

int SharedGroup::guests_at_door() { return world_->elastic() ? world_->door()->guests() : 0; }

void SharedGroup::end_presence() { world_->door()->end_presence(); }

std::shared_ptr<Growth> SharedGroup::current_growth() {
  const std::lock_guard lock(growing_);
  return growth_;
}

GrowthState SharedGroup::growth() {
  const auto growth = current_growth();
  return growth ? growth->state() : GrowthState::none;
}

void SharedGroup::drop_growth() {
  std::shared_ptr<Growth> dropped;
  {
    const std::lock_guard lock(growing_);
    dropped = std::move(growth_);
  }
  if (!dropped) return;
  dropped->stop({Errc::cancelled, "rank " + std::to_string(core_rank()) + " has given the growth of the group up"});
  world_->door()->let_go();
}

void SharedGroup::refuse_unless_admitting() const {
  driver_.check();
  if (!world_->elastic())
    refuse("the group is not elastic, so nobody can join it; set RINGLET_ELASTIC=on, or the option elastic, on all ranks");
  if (world_->has_left()) refuse("this rank has left this world");
  refuse_unless_whole_world("admit()");
}

/// Guests take no part in a growth: they come in anew, together with those that knock.
void SharedGroup::send_guests_away() {
  const int rank = core_rank();
  driver().run([&] {
    core_.fail({Errc::cancelled, "rank " + std::to_string(rank) + " has ended the epoch, so that others can join the group", rank});
  });
  throw_if_failed(world_failure());
}

bool SharedGroup::begin_growth(const CallOptions& call) {
  refuse_unless_admitting();
  drop_growth();
  if (core_.options().guests > 0) send_guests_away();
  const auto stop = std::make_shared<MeetingStop>();
  const Knocks::Chosen own = world_->door()->choose(most_to_choose(world_size(), kMaxWorldSize), [stop](const std::string& name) {
    stop->stop({Errc::peer_lost, "the process that was to join has gone: " + name});
  });
  try {
    auto growth = form_next(call, own, stop);
    const std::lock_guard lock(growing_);
    growth_ = growth;
    return growth != nullptr;
  } catch (...) {
    world_->door()->let_go();
    throw;
  }
}

/// Returns null where nobody knocks.
std::shared_ptr<Growth> SharedGroup::form_next(const CallOptions& call, const Knocks::Chosen& own,
                                               const std::shared_ptr<MeetingStop>& stop) {
  const Address coordinator{coordinator_host(), 0};
  std::shared_ptr<Growth> growth;
  const auto form = [&](const GrowthPlan& plan, std::uint16_t port) {
    WorldConfig next = config_of_growth(plan);
    next.stop = stop;
    growth = std::make_shared<Growth>(std::move(next), Address{coordinator.host, port});
  };
  BeginGrowth::Calls calls;
  calls.listen = [&](const GrowthPlan& plan) {
    form(plan, 0);
    return growth->await_port();
  };
  calls.meet = [&](const GrowthPlan& plan, std::uint16_t port) {
    if (port == 0)
      growth = std::make_shared<Growth>();
    else
      form(plan, port);
  };
  calls.send_tickets = [&](const GrowthPlan& plan, std::uint16_t port) {
    send_tickets(config_of_growth(plan), {coordinator.host, port}, plan);
  };
  BeginGrowth begin(options(), kMaxWorldSize, {static_cast<std::int32_t>(own.processes), static_cast<std::int32_t>(own.guests)},
                    std::move(calls));
  Procedure::Action action = begin.next();
  while (auto* next = std::get_if<Procedure::Run>(&action)) {
    run_own(call, std::move(next->task));
    action = begin.next();
  }
  throw_if_failed(std::get<Procedure::Done>(action).status);
  return growth;
}

/// Where this rank reaches rank 0, which is the coordinator of the next world.
std::string SharedGroup::coordinator_host() {
  const std::string& own = world_->config().hosts.front();
  const bool listens_everywhere = own == "0.0.0.0" || own == "::";
  if (core_rank() == 0 && (!listens_everywhere || world_size() == 1)) return own;
  LinkReport link;
  Status failure;
  driver().run([&] {
    failure = core_.failure();
    if (failure.ok()) link = core_.link_with(core_rank() == 0 ? 1 : 0);
  });
  throw_if_failed(failure);
  const auto address = parse_address(core_rank() == 0 ? link.own_name : link.peer_name);
  throw_if_failed(address.status());
  return address.value().host;
}

WorldConfig SharedGroup::config_of_growth(const GrowthPlan& plan) {
  WorldConfig next = world_->config();
  next.options.rank = core_rank();
  next.options.size = world_size();
  next.options.epoch = epoch();
  driver().run([&] { next.options.job = world_->job(); });
  next.options = options_of_next(next.options, plan);
  next.meeting.timeout = kFormingTimeout;
  next.meeting.world_id = random_world_id();
  next.meeting.coordinator_listens = core_rank() != 0;
  next.listening_descriptor.reset();
  next.door = world_->door();
  if (next.door->page_port() != 0) next.web.page_port = next.door->page_port();
  next.membership = world_->membership();
  next.lineage = lineage();
  next.join.clear();
  next.joined = false;
  return next;
}

void SharedGroup::send_tickets(const WorldConfig& next, const Address& coordinator, const GrowthPlan& plan) {
  wire::Ticket ticket = ticket_to(next.options, plan, coordinator, next.lineage, kFormingTimeout);
  ticket.page_port = next.web.page_port.value_or(0);
  world_->door()->send_tickets(ticket);
}

std::shared_ptr<SharedGroup> SharedGroup::finish_growth(const CallOptions& call) {
  const auto growth = current_growth();
  const auto begin = std::chrono::steady_clock::now();
  bool agreed = false;
  try {
    agreed = agree(growth && growth->state() == GrowthState::ready, call);
  } catch (...) {
    drop_growth();
    throw;
  }
  // All ranks that are left know now that all have the next world, so all switch, whatever happens to it.
  std::shared_ptr<NativeWorld> next = agreed ? growth->take() : nullptr;
  if (!next) {
    drop_growth();
    return nullptr;
  }
  const auto group = std::make_shared<SharedGroup>(std::move(next));
  group->enter_after(shared_from_this());
  GroupChange change;
  change.joined = group->world_size() - world_size();
  change.pause.nanoseconds = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  group->world_->enter(change);
  drop_growth();
  return group;
}

/// Waits until all ranks have come into this world from the one before, or it has failed, and leaves that one.
void SharedGroup::enter_after(const std::shared_ptr<SharedGroup>& before) {
  const auto all_here = start_barrier();
  std::shared_ptr<SharedGroup> last = before;
  WorldSwitch switching(before->world_->elastic());
  const auto help = [&] {
    try {
      std::vector<int> ranks;
      std::uint64_t lineage = 0;
      CallOptions call;
      call.timeout = kPatienceWithOthers;
      last = last->reform_world(call, ranks, lineage);
      switching.helped();
    } catch (const Error&) {
      switching.cannot_help();
    }
  };
  while (true) {
    const bool is_over = driver().wait(all_here->done, kWatchInterval);
    if (!is_over) driver().check();
    WorldSwitch::Entry entry = WorldSwitch::Entry::awaited;
    if (is_over) entry = all_here->status.ok() ? WorldSwitch::Entry::all_are_in : WorldSwitch::Entry::has_failed;
    switch (switching.next(entry, last->world_has_failed())) {
      case WorldSwitch::Step::wait:
        break;
      case WorldSwitch::Step::help:
        help();
        break;
      case WorldSwitch::Step::end_before:
        before->revoke();
        break;
      case WorldSwitch::Step::leave:
        return before->world_->leave();
    }
  }
}

std::shared_ptr<WorkState> SharedGroup::start_barrier() {
  auto state = std::make_shared<WorkState>();
  CollectiveTask task = make_barrier(options());
  task.completion = [state, &driver = driver()](const Status& status) {
    state->status = status;
    driver.set(state->done);
  };
  driver().run([&] { engine_.start(GroupEngine::kOwnStream, std::move(task)); });
  return state;
}

std::shared_ptr<SharedGroup> SharedGroup::await_members(const wire::Ticket& ticket) {
  if (run_unless_failed({}, make_barrier(options()))) return shared_from_this();
  const Status failure = world_failure();
  CallOptions call;
  call.timeout = kPatienceWithOthers;
  std::vector<int> met;
  std::uint64_t lineage = 0;
  auto next = reform(call, met, lineage);
  if (!is_among_members(met, ticket)) throw_if_failed(failure);
  return next;
}

std::shared_ptr<SharedGroup> SharedGroup::admit(const CallOptions& call) {
  refuse_unless_admitting();
  if (core_.options().guests > 0) {
    if (waiting() > 0) send_guests_away();
    return nullptr;
  }
  std::vector<std::int32_t> least{static_cast<std::int32_t>(growth_standing())};
  run_own(call, make_all_reduce(ReduceOp::min, ConstTensorView(least), TensorView(least), 1, options()));
  return grow(static_cast<GrowthStanding>(least[0]), call);
}

GrowthStanding SharedGroup::growth_standing() { return standing_of(growth(), waiting() > 0); }

std::shared_ptr<SharedGroup> SharedGroup::grow(GrowthStanding least, const CallOptions& call) {
  switch (step_of(least)) {
    case GrowthStep::none:
      break;
    case GrowthStep::begin:
      begin_growth(call);
      break;
    case GrowthStep::enter:
      return finish_growth(call);
    case GrowthStep::give_up:
      drop_growth();
      break;
  }
  return nullptr;
}

}  // namespace ringlet::native
