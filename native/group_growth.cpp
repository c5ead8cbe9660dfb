#include "native/group_growth.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/refuse.hpp"
#include "core/elastic/begin_growth.hpp"
#include "core/engine/requests.hpp"
#include "native/hostfile.hpp"
#include "native/open_worlds.hpp"
#include "native/shared_group.hpp"
#include "native/this_process.hpp"

namespace ringlet::native {

namespace {

/// The processes of a growth are all there, so their meeting is a matter of some round trips.
constexpr Duration kFormingTimeout = Duration::seconds(10);
/// How soon a rank that waits for something of the next world notices that the present one has failed.
constexpr Duration kWatchInterval = Duration::milliseconds(10);

std::shared_ptr<WorkState> start_barrier(SharedGroup& group) {
  auto state = std::make_shared<WorkState>();
  CollectiveTask task = make_barrier(group.options());
  task.completion = [state, &driver = group.driver()](const Status& status) {
    state->status = status;
    driver.set(state->done);
  };
  group.driver().run([&] { group.core().group().start(GroupEngine::kOwnStream, std::move(task)); });
  return state;
}

/// Waits until all ranks have come into the next world from the one before, or it has failed, and leaves that one.
void enter_after(SharedGroup& next, const std::shared_ptr<SharedGroup>& before) {
  const auto all_here = start_barrier(next);
  std::shared_ptr<SharedGroup> last = before;
  WorldSwitch switching(before->elastic());
  const auto help = [&] {
    try {
      std::vector<int> ranks;
      std::uint64_t lineage = 0;
      CallOptions call;
      call.timeout = kPatienceWithOthers;
      last = last->survivors().follow_losses(call, ranks, lineage);
      switching.helped();
    } catch (const Error&) {
      switching.cannot_help();
    }
  };
  while (true) {
    const bool is_over = next.driver().wait(all_here->done, kWatchInterval);
    if (!is_over) next.driver().check();
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
        return before->world()->leave();
    }
  }
}

}  // namespace

GroupGrowth::~GroupGrowth() {
  if (group_.driver().is_inherited()) keep_for_ever(growth_);
}

int GroupGrowth::waiting() const { return group_.elastic() ? group_.world()->door()->waiting() : 0; }

std::shared_ptr<Growth> GroupGrowth::current() {
  const std::lock_guard lock(mutex_);
  return growth_;
}

GrowthState GroupGrowth::state() {
  const auto growth = current();
  return growth ? growth->state() : GrowthState::none;
}

void GroupGrowth::drop() {
  std::shared_ptr<Growth> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped = std::move(growth_);
  }
  if (!dropped) return;
  dropped->stop({Errc::cancelled, "rank " + std::to_string(group_.options().rank) + " has given the growth of the group up"});
  group_.world()->door()->let_go();
}

void GroupGrowth::refuse_unless_admitting() const {
  group_.driver().check();
  if (!group_.elastic())
    refuse("the group is not elastic, so nobody can join it; set RINGLET_ELASTIC=on, or the option elastic, on all ranks");
  if (group_.world()->has_left()) refuse("this rank has left this world");
  group_.refuse_unless_whole_world("admit()");
}

/// Guests take no part in a growth: they come in anew, together with those that knock.
void GroupGrowth::send_guests_away() {
  const int rank = group_.options().rank;
  group_.driver().run([&] {
    group_.core().fail({Errc::cancelled, "rank " + std::to_string(rank) + " has ended the epoch, so that others can join the group", rank});
  });
  throw_if_failed(group_.world_failure());
}

bool GroupGrowth::begin(const CallOptions& call) {
  refuse_unless_admitting();
  drop();
  if (group_.options().guests > 0) send_guests_away();
  Door& door = *group_.world()->door();
  const auto stop = std::make_shared<MeetingStop>();
  const Knocks::Chosen own = door.choose(most_to_choose(group_.world_size(), kMaxWorldSize), [stop](const std::string& name) {
    stop->stop({Errc::peer_lost, "the process that was to join has gone: " + name});
  });
  try {
    auto growth = form_next(call, own, stop);
    const std::lock_guard lock(mutex_);
    growth_ = growth;
    return growth != nullptr;
  } catch (...) {
    door.let_go();
    throw;
  }
}

/// Returns null where nobody knocks.
std::shared_ptr<Growth> GroupGrowth::form_next(const CallOptions& call, const Knocks::Chosen& own,
                                               const std::shared_ptr<MeetingStop>& stop) {
  const Address coordinator{coordinator_host(), 0};
  std::shared_ptr<Growth> growth;
  const auto form = [&](const GrowthPlan& plan, std::uint16_t port) {
    WorldStart start = group_.world()->start();
    start.entry = WorldEntry::growth;
    start.lineage = group_.lineage();
    start.stop = stop;
    growth = std::make_shared<Growth>(config_of_next(plan), std::move(start), Address{coordinator.host, port});
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
  calls.send_tickets = [&](const GrowthPlan& plan, std::uint16_t port) { send_tickets({coordinator.host, port}, plan); };
  BeginGrowth begin(group_.options(), kMaxWorldSize, {static_cast<std::int32_t>(own.processes), static_cast<std::int32_t>(own.guests)},
                    std::move(calls));
  Procedure::Action action = begin.next();
  while (auto* next = std::get_if<Procedure::Run>(&action)) {
    group_.run_own(call, std::move(next->task));
    action = begin.next();
  }
  throw_if_failed(std::get<Procedure::Done>(action).status);
  return growth;
}

/// Where this rank reaches rank 0, which is the coordinator of the next world.
std::string GroupGrowth::coordinator_host() {
  const bool is_coordinator = group_.options().rank == 0;
  const std::string& own = group_.world()->config().hosts.front();
  const bool listens_everywhere = own == "0.0.0.0" || own == "::";
  if (is_coordinator && (!listens_everywhere || group_.world_size() == 1)) return own;
  LinkReport link;
  Status failure;
  group_.driver().run([&] {
    failure = group_.core().failure();
    if (failure.ok()) link = group_.core().link_with(is_coordinator ? 1 : 0);
  });
  throw_if_failed(failure);
  const auto address = parse_address(is_coordinator ? link.own_name : link.peer_name);
  throw_if_failed(address.status());
  return address.value().host;
}

WorldConfig GroupGrowth::config_of_next(const GrowthPlan& plan) {
  WorldConfig next = group_.world()->config();
  next.options.rank = group_.options().rank;
  next.options.size = group_.world_size();
  next.options.epoch = group_.epoch();
  group_.driver().run([&] { next.options.job = group_.world()->job(); });
  next.options = options_of_next(next.options, plan);
  next.meeting.timeout = kFormingTimeout;
  next.meeting.world_id = random_world_id();
  next.meeting.coordinator_listens = group_.options().rank != 0;
  if (const std::uint16_t port = group_.world()->door()->page_port(); port != 0) next.web.page_port = port;
  next.join.clear();
  return next;
}

void GroupGrowth::send_tickets(const Address& coordinator, const GrowthPlan& plan) {
  const WorldConfig next = config_of_next(plan);
  wire::Ticket ticket = ticket_to(next.options, plan, coordinator, group_.lineage(), kFormingTimeout);
  ticket.page_port = next.web.page_port.value_or(0);
  group_.world()->door()->send_tickets(ticket);
}

std::shared_ptr<SharedGroup> GroupGrowth::finish(const CallOptions& call) {
  const auto growth = current();
  const auto begin = std::chrono::steady_clock::now();
  bool agreed = false;
  try {
    agreed = group_.survivors().agree(growth && growth->state() == GrowthState::ready, call);
  } catch (...) {
    drop();
    throw;
  }
  // All ranks that are left know now that all have the next world, so all switch, whatever happens to it.
  std::shared_ptr<NativeWorld> next = agreed ? growth->take() : nullptr;
  if (!next) {
    drop();
    return nullptr;
  }
  const auto group = std::make_shared<SharedGroup>(std::move(next));
  enter_after(*group, group_.shared_from_this());
  GroupChange change;
  change.joined = group->world_size() - group_.world_size();
  change.pause.nanoseconds = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  group->world()->enter(change);
  drop();
  return group;
}

std::shared_ptr<SharedGroup> GroupGrowth::admit(const CallOptions& call) {
  refuse_unless_admitting();
  if (group_.options().guests > 0) {
    if (waiting() > 0) send_guests_away();
    return nullptr;
  }
  std::vector<std::int32_t> least{static_cast<std::int32_t>(standing())};
  group_.run_own(
      call, for_purpose(Purpose::growth, make_all_reduce(ReduceOp::min, ConstTensorView(least), TensorView(least), 1, group_.options())));
  return grow(static_cast<GrowthStanding>(least[0]), call);
}

GrowthStanding GroupGrowth::standing() { return standing_of(state(), waiting() > 0); }

std::shared_ptr<SharedGroup> GroupGrowth::grow(GrowthStanding least, const CallOptions& call) {
  switch (step_of(least)) {
    case GrowthStep::none:
      break;
    case GrowthStep::begin:
      begin(call);
      break;
    case GrowthStep::enter:
      return finish(call);
    case GrowthStep::give_up:
      drop();
      break;
  }
  return nullptr;
}

/// Returns null where they have not come yet, or could not be met. They may knock at the doors of all ranks; rank 0 decides when it is
/// late.
std::shared_ptr<SharedGroup> GroupGrowth::admit_first_guests(int guests, bool is_late) {
  Door& door = *group_.world()->door();
  const bool decides = group_.options().rank == 0;
  std::vector<std::int32_t> told{state() != GrowthState::none ? 1 : 0, decides && is_late ? 1 : 0, door.guests()};
  group_.run_own(
      {}, for_purpose(Purpose::growth, make_all_reduce(ReduceOp::sum, ConstTensorView(told), TensorView(told), 1, group_.options())));
  if (told[1] != 0)
    throw_if_failed({Errc::timed_out, "only " + std::to_string(told[2]) + " of " + std::to_string(guests) + " guests have come in time"});
  if (told[0] == 0 && told[2] < guests) return nullptr;
  // From here on guests leave the door because they are in.
  if (state() == GrowthState::ready) door.end_presence();
  return admit({});
}

}  // namespace ringlet::native
