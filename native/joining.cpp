#include "native/joining.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "core/base/refuse.hpp"
#include "core/engine/requests.hpp"
#include "native/hostfile.hpp"
#include "native/this_process.hpp"

namespace ringlet::native {

namespace {

using Clock = std::chrono::steady_clock;

constexpr Duration kRejoinTimeout = Duration::seconds(60);
constexpr auto kFirstGuestsInterval = std::chrono::milliseconds(20);

std::string name_for_people() {
  const Identity self = this_process();
  return self.program + " (process " + std::to_string(self.pid) + ") on " + self.host;
}

void follow_ticket(const wire::Ticket& ticket, WorldConfig& config, WorldStart& start) {
  throw_if_failed(use_ticket(ticket, kMaxWorldSize, config.options));
  if (ticket.page_port != 0) {
    const auto port = static_cast<std::uint16_t>(ticket.page_port);
    config.web.page_port = port;
    start.door->let_in_page_of(port);
  }
  start.lineage = ticket.lineage;
  config.meeting.timeout = Duration::milliseconds(ticket.wait_ms);
  config.meeting.coordinator_listens = true;
  meet_at({ticket.host, static_cast<std::uint16_t>(ticket.port)}, config.reach, uv::list_interfaces(), config.hosts, config.options.rank,
          config.meeting);
}

/// For a process that has met the members: waits until they have switched to this world, and returns the group in which they are, which is
/// that of a later epoch where a rank was lost meanwhile. Throws where they have given it up.
std::shared_ptr<SharedGroup> await_members(const std::shared_ptr<SharedGroup>& group, const wire::Ticket& ticket) {
  if (group->run_unless_failed({}, make_barrier(group->options()))) return group;
  const Status failure = group->world_failure();
  CallOptions call;
  call.timeout = kPatienceWithOthers;
  std::vector<int> met;
  std::uint64_t lineage = 0;
  auto next = group->survivors().reform(call, met, lineage);
  if (!is_among_members(met, ticket)) throw_if_failed(failure);
  return next;
}

std::vector<Address> doors_of_others(SharedGroup& group) {
  std::vector<Address> doors;
  group.driver().run([&] {
    const ringlet::World& world = group.core();
    for (int rank = 0; rank < world.options().natives(); ++rank)
      if (rank != world.options().rank && world.door(rank).port != 0) doors.push_back(world.door(rank));
    for (const Address& door : group.world()->first_doors())
      if (std::find(doors.begin(), doors.end(), door) == doors.end()) doors.push_back(door);
  });
  return doors;
}

}  // namespace

Knocker::Knocker(const WorldConfig& config, Duration timeout) : driver_(true) {
  interruption_.is_wanted = config.interrupted;
  interruption_.end = [this] {
    knocking_.reset();
    if (answered_.is_set()) return;
    answer_ = Status{Errc::cancelled, "this process was interrupted while it knocked at the doors of a group"};
    driver_.set(answered_);
  };
  KnockingOptions options;
  options.doors = config.join;
  options.name = name_for_people();
  options.timeout = timeout;
  options.session = config.options.session;
  driver_.run([&] {
    network_ = std::make_unique<UvNetwork>(driver_.loop());
    authenticator_ = std::make_unique<TokenAuthenticator>(config.token, config.encrypts(), config.ciphers);
    knocking_ = std::make_unique<Knocking>(driver_.loop(), *network_, *authenticator_, std::move(options), [this](auto answer) {
      answer_ = std::move(answer);
      driver_.set(answered_);
    });
  });
}

Knocker::~Knocker() { driver_.destroy(knocking_, network_, authenticator_); }

wire::Ticket Knocker::await_ticket() {
  if (!driver_.wait(answered_, std::nullopt, interruption_)) driver_.check();
  throw_if_failed(answer_.status());
  return answer_.value();
}

std::shared_ptr<SharedGroup> join_group(WorldConfig config, WorldStart start) {
  start.entry = WorldEntry::join;
  const auto deadline = Clock::now() + std::chrono::nanoseconds(config.meeting.timeout.nanoseconds);
  std::string failure;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    Knocker knocker(config, Duration::milliseconds(std::max<std::int64_t>(left.count(), 1)));
    wire::Ticket ticket;
    try {
      ticket = knocker.await_ticket();
    } catch (const Error& error) {
      if (failure.empty()) throw;
      throw_if_failed({error.status().code(), error.status().text() + "; it was admitted before, and that failed: " + failure});
    }
    try {
      follow_ticket(ticket, config, start);
      const auto world = std::make_shared<NativeWorld>(config, start);
      const auto group = await_members(std::make_shared<SharedGroup>(world), ticket);
      world->enter_by_joining(group->epoch());
      start.door->open();
      return group;
    } catch (const Error& error) {
      // The members have dropped this growth, or will, and admit this process with the next one.
      failure = error.status().text();
      // Another rank may tell of a coordinator that this process reaches.
      std::rotate(config.join.begin(), config.join.begin() + 1, config.join.end());
    }
  }
}

std::shared_ptr<SharedGroup> rejoin(SharedGroup& group) {
  const NativeWorld& world = *group.world();
  if (!world.elastic()) refuse("the group is not elastic; a process joins others with RINGLET_JOIN, or the option join");
  if (!world.is_left_out()) refuse("rejoin() follows a reform() that has said that the others have gone on without this rank");
  WorldConfig config = world.config();
  config.join = doors_of_others(group);
  if (config.join.empty()) refuse("no other rank of this world has a door that this one knows");
  config.meeting.timeout = kRejoinTimeout;
  WorldStart start = world.start();
  start.stop.reset();
  // Two that are to join again must not wait at each other's doors.
  start.door->shut();
  return join_group(std::move(config), std::move(start));
}

std::shared_ptr<SharedGroup> await_first_guests(std::shared_ptr<SharedGroup> group, int guests, Duration timeout) {
  const auto deadline = Clock::now() + std::chrono::nanoseconds(timeout.nanoseconds);
  while (true) {
    try {
      group->poll_interruption();
      if (auto next = group->growth().admit_first_guests(guests, Clock::now() >= deadline)) return next;
      std::this_thread::sleep_for(kFirstGuestsInterval);
    } catch (const PeerLost&) {
      std::vector<int> before;
      std::uint64_t lineage = 0;
      group = group->survivors().reform({}, before, lineage);
    }
  }
}

}  // namespace ringlet::native
