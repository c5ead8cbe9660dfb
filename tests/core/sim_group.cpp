#include "tests/core/sim_group.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

namespace ringlet::test {

SimGroup::SimGroup(const GroupSetup& setup)
    : setup_(setup),
      sim_({.seed = setup.seed, .paths = setup.paths}),
      guests_(static_cast<std::size_t>(setup_.world.guests)),
      ranks_(static_cast<std::size_t>(setup.size)) {
  std::map<int, SimNode*> first_on;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    SimNode*& first = first_on[rank < setup.machines.size() ? setup.machines[rank] : -1 - static_cast<int>(rank)];
    ranks_[rank].node = first == nullptr ? &sim_.add_node() : &sim_.add_node_beside(*first);
    if (first == nullptr) first = ranks_[rank].node;
  }
  const int natives = size() - setup_.world.guests;
  for (int rank = 0; rank < natives; ++rank) {
    MeetingOptions& options = meeting_options(rank);
    options.timeout = setup.connect_timeout;
    options.world_id = 77;
    if (setup.world.elastic) options.door = door(rank);
    if (!setup.with_roster) options.coordinator = listening_address(0);
    for (int peer = 0; setup.with_roster && peer < natives; ++peer) options.roster.push_back({listening_address(peer)});
    set_token(rank, kSimToken);
    make_world(rank, setup.world);
  }
}

int SimGroup::beside(int rank) const {
  const auto r = static_cast<std::size_t>(rank);
  if (r >= setup_.machines.size()) return 0;
  return static_cast<int>(std::count(setup_.machines.begin(), setup_.machines.begin() + rank, setup_.machines[r]));
}

SimGroup::~SimGroup() {
  for (Guest& guest : guests_) guest.entry.reset();
  for (int rank = 0; rank < size(); ++rank) destroy(rank);
}

void SimGroup::make_world(int rank, const WorldOptions& options) {
  Rank& entry = ranks_[static_cast<std::size_t>(rank)];
  WorldOptions own = options;
  own.rank = rank;
  if (own.size == 1) own.size = size();
  if (own.size == size() && own.guests == 0) own.guests = setup_.world.guests;
  if (own.kernels == nullptr) own.kernels = simd::find("");
  entry.meeting.reset();
  entry.world = std::make_unique<World>(node(rank).loop(), own);
}

void SimGroup::set_token(int rank, const std::string& token) {
  Rank& entry = ranks_[static_cast<std::size_t>(rank)];
  entry.meeting.reset();
  entry.incoming.reset();
  entry.authenticator = std::make_unique<TestAuthenticator>(setup_.seed * 1000 + static_cast<std::uint64_t>(rank), token, setup_.encrypts);
  entry.incoming = std::make_unique<IncomingLinks>(node(rank).loop(), *entry.authenticator);
}

void SimGroup::start_meeting(int rank) {
  Rank& entry = ranks_[static_cast<std::size_t>(rank)];
  entry.meeting = std::make_unique<Meeting>(node(rank).loop(), node(rank).network(), *entry.authenticator, entry.incoming.get(),
                                            *entry.world, entry.meeting_options);
  start(*entry.meeting, entry);
}

void SimGroup::start(Meeting& meeting, Rank& entry) {
  meeting.start([&entry](const Status& status) {
    REQUIRE_FALSE(entry.met.has_value());
    entry.met = status;
  });
}

void SimGroup::start_guest(int number) {
  Guest& guest = guests_[static_cast<std::size_t>(number)];
  SimNode& own = guest_node(number);
  guest.authenticator =
      std::make_unique<TestAuthenticator>(setup_.seed * 1000 + 500 + static_cast<std::uint64_t>(number), kSimToken, setup_.encrypts);
  GuestEntryOptions options;
  options.coordinator = {sim_.node(0).host(), 5000};
  options.name = "guest " + std::to_string(number);
  options.timeout = setup_.entry_timeout;
  options.session = setup_.world.session;
  guest.entry = std::make_unique<GuestEntry>(own.loop(), own.network(), *guest.authenticator, options,
                                             [this, number](Result<GuestEntry::Entry>& entry) {
                                               if (entry.ok()) return on_seat(number, std::move(entry).value());
                                               guests_[static_cast<std::size_t>(number)].refused = entry.status();
                                             });
}

void SimGroup::on_seat(int number, GuestEntry::Entry seated) {
  Guest& guest = guests_[static_cast<std::size_t>(number)];
  guest.rank = static_cast<int>(seated.seat.rank);
  guest.present = static_cast<int>(seated.seat.present);
  Rank& entry = ranks_[seated.seat.rank];
  entry.node = &guest_node(number);
  entry.met.reset();
  entry.closed = false;
  WorldOptions options = setup_.world;
  // A guest learns these from the other ranks.
  options.limits = {};
  options.placement = {};
  options.elastic = false;
  options.kernels = simd::find("");
  entry.world = std::make_unique<World>(entry.node->loop(), seated.world_options(options));
  MeetingOptions& meeting = entry.meeting_options;
  meeting.timeout = seated.wait();
  entry.world->adopt(std::move(seated.session), 0);
  meeting.coordinator = {sim_.node(0).host(), 5000};
  meeting.name = "guest " + std::to_string(number);
  meeting.on_present = [&guest](int present) { guest.present = present; };
  entry.meeting =
      std::make_unique<Meeting>(entry.node->loop(), entry.node->network(), *guest.authenticator, nullptr, *entry.world, meeting);
  start(*entry.meeting, entry);
}

void SimGroup::leave_guest(int number) {
  Guest& guest = guests_[static_cast<std::size_t>(number)];
  guest.entry.reset();
  if (guest.rank >= 0) destroy(guest.rank);
  guest.rank = -1;
}

std::unique_ptr<World> SimGroup::take_world(int rank) {
  Rank& entry = ranks_[static_cast<std::size_t>(rank)];
  entry.meeting.reset();
  return std::move(entry.world);
}

void SimGroup::destroy(int rank) {
  Rank& entry = ranks_[static_cast<std::size_t>(rank)];
  entry.meeting.reset();
  entry.incoming.reset();
  entry.world.reset();
}

void SimGroup::meet() {
  if (size() == 1) return;
  for (int rank = 0; rank < size() - setup_.world.guests; ++rank) start_meeting(rank);
  for (int number = 0; number < setup_.world.guests; ++number) start_guest(number);
  REQUIRE(sim_.run_until([&] {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.met.has_value(); });
  }) == RunEnd::done);
  for (int rank = 0; rank < size(); ++rank) {
    INFO("rank " << rank << ": " << met(rank)->text());
    REQUIRE(met(rank)->ok());
  }
}

Outcome& SimGroup::new_outcome(int rank) {
  ++pending_;
  outcomes_.emplace_back();
  outcomes_.back().started = node(rank).loop().now();
  return outcomes_.back();
}

Completion SimGroup::completion_of(int rank, Outcome& outcome) {
  return [this, rank, &outcome](const Status& status) {
    if (outcome.completions++ == 0) --pending_;
    outcome.status = status;
    outcome.ended = node(rank).loop().now();
  };
}

Outcome& SimGroup::start_in(GroupEngine& group, int rank, std::uint16_t stream, Result<CollectiveTask> task) {
  INFO(task.status().text());
  REQUIRE(task.ok());
  Outcome& outcome = new_outcome(rank);
  task.value().completion = completion_of(rank, outcome);
  group.start(stream, std::move(task).value());
  CHECK_FALSE(outcome.done());
  return outcome;
}

Outcome& SimGroup::send_in(GroupEngine& group, int rank, std::uint16_t stream, Result<MessageTask> task) {
  INFO(task.status().text());
  REQUIRE(task.ok());
  Outcome& outcome = new_outcome(rank);
  task.value().completion = completion_of(rank, outcome);
  group.send(stream, std::move(task).value());
  CHECK_FALSE(outcome.done());
  return outcome;
}

Outcome& SimGroup::receive_in(GroupEngine& group, int rank, std::uint16_t stream, Result<MessageTask> task) {
  INFO(task.status().text());
  REQUIRE(task.ok());
  Outcome& outcome = new_outcome(rank);
  task.value().completion = completion_of(rank, outcome);
  group.receive(stream, std::move(task).value());
  CHECK_FALSE(outcome.done());
  return outcome;
}

Outcome& SimGroup::start_split(GroupEngine& parent, int rank, std::uint16_t stream, int color, int key, GroupEngine*& made,
                               Duration timeout) {
  Outcome& outcome = new_outcome(rank);
  made = nullptr;
  SplitTask task;
  task.color = color;
  task.key = key;
  task.timeout = timeout;
  task.completion = [&made, completion = completion_of(rank, outcome)](const Status& status, GroupEngine* group) {
    made = group;
    completion(status);
  };
  world(rank).split(parent, stream, std::move(task));
  CHECK_FALSE(outcome.done());
  return outcome;
}

Outcome& SimGroup::start_create(GroupEngine& parent, int rank, const std::vector<int>& ranks, int tag, GroupEngine*& made,
                                Duration timeout) {
  Outcome& outcome = new_outcome(rank);
  made = nullptr;
  CHECK(check_creation(ranks, tag, parent.options()).ok());
  CreateTask task;
  task.ranks = ranks;
  task.tag = tag;
  task.timeout = timeout;
  task.completion = [&made, completion = completion_of(rank, outcome)](const Status& status, GroupEngine* group) {
    made = group;
    completion(status);
  };
  world(rank).create(parent, std::move(task));
  CHECK_FALSE(outcome.done());
  return outcome;
}

std::vector<GroupEngine*> SimGroup::split(const std::vector<GroupEngine*>& parents, const std::vector<int>& colors,
                                          const std::vector<int>& keys) {
  std::vector<GroupEngine*> made(parents.size());
  std::vector<Outcome*> outcomes;
  for (std::size_t rank = 0; rank < parents.size(); ++rank)
    if (parents[rank] != nullptr)
      outcomes.push_back(&start_split(*parents[rank], static_cast<int>(rank), 0, colors[rank], keys.empty() ? -1 : keys[rank], made[rank]));
  REQUIRE(run_until_done());
  for ([[maybe_unused]] const Outcome* outcome : outcomes) {
    INFO(outcome->status.text());
    REQUIRE(outcome->status.ok());
  }
  return made;
}

std::vector<GroupEngine*> SimGroup::groups() {
  std::vector<GroupEngine*> all;
  for (int rank = 0; rank < size(); ++rank) all.push_back(&world(rank).group());
  return all;
}

bool SimGroup::run_until_done(Duration limit) {
  return sim_.run_until([&] { return pending_ == 0; }, {.time = limit}) == RunEnd::done;
}

void SimGroup::close(int rank) {
  world(rank).close([&entry = ranks_[static_cast<std::size_t>(rank)]] {
    REQUIRE_FALSE(entry.closed);
    entry.closed = true;
  });
}

void SimGroup::close_cleanly() {
  for (int rank = 0; rank < size(); ++rank) {
    INFO("rank " << rank << ": " << world(rank).failure().text());
    REQUIRE(world(rank).failure().ok());
    close(rank);
  }
  REQUIRE(sim_.run_until([&] { return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.closed; }); },
                         {.time = Duration::seconds(60)}) == RunEnd::done);
  for (int rank = 0; rank < size(); ++rank) CHECK(world(rank).failure().code() == Errc::cancelled);
}

std::vector<int> world_ranks(const GroupEngine& group) {
  std::vector<int> ranks;
  for (int rank = 0; rank < group.members().size(); ++rank) ranks.push_back(group.members().world_rank(rank));
  return ranks;
}

PathOptions rough_paths() {
  PathOptions paths;
  paths.split_per_mille = {0, 500};
  paths.stall_per_mille = 2;
  return paths;
}

GroupSetup random_setup(SimRandom& random, std::uint64_t seed) {
  GroupSetup setup;
  setup.size = static_cast<int>(2 + random.below(4));
  setup.seed = seed;
  setup.encrypts = seed % 3 == 0;
  if (random.below(2) != 0) setup.paths = rough_paths();
  return setup;
}

}  // namespace ringlet::test
