#include "native/joining.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "core/base/refuse.hpp"
#include "core/engine/requests.hpp"
#include "native/growth.hpp"
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

void follow_ticket(const wire::Ticket& ticket, WorldConfig& config) {
  throw_if_failed(use_ticket(ticket, kMaxWorldSize, config.options));
  if (ticket.page_port != 0) config.web.page_port = static_cast<std::uint16_t>(ticket.page_port);
  config.lineage = ticket.lineage;
  config.meeting.timeout = Duration::milliseconds(ticket.wait_ms);
  config.meeting.coordinator_listens = true;
  meet_at({ticket.host, static_cast<std::uint16_t>(ticket.port)}, config.reach, config.hosts, config.options.rank, config.meeting);
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

Knocker::~Knocker() {
  try {
    driver_.run([this] {
      knocking_.reset();
      network_.reset();
    });
  } catch (...) {
    driver_.give_up(std::current_exception());
    // After a failure in their midst they are in any state, so they are not destroyed.
    (void)knocking_.release(), (void)network_.release(), (void)authenticator_.release();
  }
}

wire::Ticket Knocker::await_ticket() {
  if (!driver_.wait(answered_, std::nullopt, interruption_)) driver_.check();
  throw_if_failed(answer_.status());
  return answer_.value();
}

std::shared_ptr<SharedGroup> join_group(WorldConfig config) {
  if (!config.door) config.door = std::make_shared<Door>(config.door_options, config.token, config.encrypts(), config.ciphers);
  if (!config.membership) config.membership = std::make_shared<MembershipLog>(config.membership_descriptor);
  config.joined = true;
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
      follow_ticket(ticket, config);
      const auto world = std::make_shared<NativeWorld>(config);
      const auto group = std::make_shared<SharedGroup>(world)->await_members(ticket);
      world->enter_by_joining(group->epoch());
      config.door->open();
      return group;
    } catch (const Error& error) {
      // The members have dropped this growth, or will, and admit this process with the next one.
      failure = error.status().text();
    }
  }
}

std::shared_ptr<SharedGroup> SharedGroup::rejoin() {
  if (!elastic()) refuse("the group is not elastic; a process joins others with RINGLET_JOIN, or the option join");
  if (!world_->is_left_out()) refuse("rejoin() follows a reform() that has said that the others have gone on without this rank");
  WorldConfig config = world_->config();
  config.join = doors_of_others();
  if (config.join.empty()) refuse("no other rank of this world has a door that this one knows");
  config.door = world_->door();
  config.membership = world_->membership();
  // Two that are to join again must not wait at each other's doors.
  config.door->shut();
  config.listening_descriptor.reset();
  config.stop.reset();
  config.meeting.timeout = kRejoinTimeout;
  return join_group(std::move(config));
}

std::vector<Address> SharedGroup::doors_of_others() {
  std::vector<Address> doors;
  driver().run([&] {
    for (int rank = 0; rank < core_.options().natives(); ++rank)
      if (rank != core_rank() && core_.door(rank).port != 0) doors.push_back(core_.door(rank));
  });
  return doors;
}

std::shared_ptr<SharedGroup> await_first_guests(std::shared_ptr<SharedGroup> group, int guests, Duration timeout) {
  const auto deadline = Clock::now() + std::chrono::nanoseconds(timeout.nanoseconds);
  while (true) {
    try {
      group->poll_interruption();
      if (auto next = group->admit_first_guests(guests, Clock::now() >= deadline)) return next;
      std::this_thread::sleep_for(kFirstGuestsInterval);
    } catch (const PeerLost&) {
      std::vector<int> before;
      std::uint64_t lineage = 0;
      group = group->reform({}, before, lineage);
    }
  }
}

/// Returns null where they have not come yet, or could not be met. Rank 0, at whose door they knock, decides.
std::shared_ptr<SharedGroup> SharedGroup::admit_first_guests(int guests, bool is_late) {
  std::vector<std::int32_t> told{growth() != GrowthState::none || guests_at_door() >= guests ? 1 : 0, is_late ? 1 : 0, guests_at_door()};
  run_own({}, make_broadcast(TensorView(told), 0, options()));
  if (told[1] != 0)
    throw_if_failed({Errc::timed_out, "only " + std::to_string(told[2]) + " of " + std::to_string(guests) + " guests have come in time"});
  if (told[0] == 0) return nullptr;
  // From here on guests leave the door because they are in.
  if (growth() == GrowthState::ready) end_presence();
  return admit({});
}

}  // namespace ringlet::native
