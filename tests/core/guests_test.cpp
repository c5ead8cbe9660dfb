#include <catch2/catch.hpp>

#include "tests/core/operation.hpp"
#include "tests/core/raw_peer.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

GroupSetup guests_setup(int natives, int guests, std::uint64_t seed = 0) {
  GroupSetup setup;
  setup.size = natives + guests;
  setup.world.guests = guests;
  setup.seed = seed;
  return setup;
}

GuestEntryOptions entry_to(const SimNode& coordinator, const std::string& name) {
  GuestEntryOptions options;
  options.coordinator = {coordinator.host(), 5000};
  options.name = name;
  return options;
}

bool all_met(SimGroup& group) {
  for (int rank = 0; rank < group.size(); ++rank)
    if (!group.met(rank)) return false;
  return true;
}

std::uint64_t run_seed(std::uint64_t seed) {
  SimRandom random(seed * 3 + 1);
  GroupSetup setup = guests_setup(static_cast<int>(1 + random.below(3)), static_cast<int>(1 + random.below(8)), seed);
  setup.with_roster = random.below(3) == 0;
  setup.encrypts = seed % 2 != 0;
  if (random.below(2) != 0) setup.paths = rough_paths();
  setup.paths.dial_refused_per_mille = random.below(2) == 0 ? 0 : 100;
  setup.world.limits.exchange_bytes = pick<std::size_t>(random, {0, 64, 1000});
  setup.world.limits.direct_bytes = setup.world.limits.exchange_bytes + pick<std::size_t>(random, {0, 100, 2000});
  SimGroup group(setup);
  for (int rank = 0; rank < setup.size - setup.world.guests; ++rank)
    group.node(rank).loop().after(Duration::milliseconds(static_cast<std::int64_t>(random.below(2000))),
                                  [&group, rank] { group.start_meeting(rank); });
  for (int number = 0; number < setup.world.guests; ++number)
    group.guest_node(number).loop().after(Duration::milliseconds(static_cast<std::int64_t>(random.below(2000))),
                                          [&group, number] { group.start_guest(number); });
  REQUIRE(group.sim().run_until([&] { return all_met(group); }) == RunEnd::done);
  for (int rank = 0; rank < setup.size; ++rank) {
    INFO("rank " << rank << ": " << group.met(rank)->text());
    REQUIRE(group.met(rank)->ok());
  }
  std::vector<Operation> operations;
  for (int i = 0; i < 6; ++i) operations.push_back(random_operation(random, group.options(0), 3000));
  for (int rank = 0; rank < setup.size; ++rank) {
    for (auto& operation : operations) {
      operation.outcomes.resize(static_cast<std::size_t>(setup.size));
      operation.outcomes[static_cast<std::size_t>(rank)] =
          &group.start(rank, operation.stream, make_task(operation, rank, group.options(rank)));
    }
  }
  REQUIRE(group.run_until_done());
  for (auto& operation : operations) check_operation(operation, setup.size);
  group.close_cleanly();
  return group.sim().trace_hash();
}

}  // namespace

TEST_CASE("worlds with guests meet, and their collectives equal the reference") {
  for (const auto seed : seeds(150)) {
    CAPTURE(seed);
    run_seed(seed);
  }
}

TEST_CASE("the same seed gives the same run with guests") {
  for (const auto seed : seeds(5)) CHECK(run_seed(seed) == run_seed(seed));
}

TEST_CASE("a guest that goes before the group is complete frees its seat, and the others hear how many are there") {
  SimGroup group(guests_setup(1, 3));
  group.start_meeting(0);
  group.start_guest(0);
  group.sim().run_for(Duration::seconds(1));
  group.start_guest(1);
  group.sim().run_for(Duration::seconds(1));
  CHECK(group.guest_rank(0) == 1);
  CHECK(group.guest_rank(1) == 2);
  CHECK(group.guest_present(0) == 3);
  const bool silently = GENERATE(false, true);
  if (silently) {
    group.sim().stop(group.guest_node(0), StopKind::falls_silent).now();
    group.sim().run_for(Duration::seconds(15));
  } else {
    group.leave_guest(0);
    group.sim().run_for(Duration::seconds(1));
  }
  CHECK(group.guest_present(1) == 2);
  group.start_guest(2);
  group.sim().run_for(Duration::seconds(1));
  CHECK(group.guest_rank(2) == 1);
  CHECK(group.guest_present(1) == 3);
  CHECK_FALSE(group.met(0));
  // This is longer than guests look for the group.
  group.sim().run_for(Duration::seconds(30));
  if (silently) return;
  group.start_guest(0);
  REQUIRE(group.sim().run_until([&] { return all_met(group); }, {.time = Duration::seconds(5)}) == RunEnd::done);
  for (int rank = 0; rank < 4; ++rank) CHECK(group.met(rank)->ok());
  CHECK(group.guest_rank(0) == 3);
  group.close_cleanly();
}

TEST_CASE("who comes when the seats are taken, or all have met, is told so and harms nobody") {
  GroupSetup setup = guests_setup(2, 2);
  SimGroup group(setup);
  group.start_meeting(0);
  group.start_guest(0);
  group.start_guest(1);
  group.sim().run_for(Duration::seconds(1));
  TestAuthenticator authenticator(5, kSimToken);
  SimNode& late = group.sim().add_node();
  const auto ask = [&] {
    std::optional<Status> answer;
    const GuestEntry entry(late.loop(), late.network(), authenticator, entry_to(group.node(0), "late"),
                           [&](Result<GuestEntry::Entry>& outcome) { answer = outcome.status(); });
    group.sim().run_until([&] { return answer.has_value(); }, {.time = Duration::seconds(5)});
    REQUIRE(answer);
    CHECK(answer->code() == Errc::invalid_argument);
    return answer->text();
  };
  CHECK_THAT(ask(), Contains("all seats for guests are taken") && Contains("2"));
  group.start_meeting(1);
  REQUIRE(group.sim().run_until([&] { return all_met(group); }, {.time = Duration::seconds(5)}) == RunEnd::done);
  CHECK_THAT(ask(), Contains("the group is complete") && Contains("4 ranks"));
  for (int rank = 0; rank < 4; ++rank) CHECK(group.met(rank)->ok());
  group.close_cleanly();
}

TEST_CASE("a group without guests says so") {
  SimGroup group(guests_setup(2, 0));
  group.start_meeting(0);
  TestAuthenticator authenticator(5, kSimToken);
  SimNode& node = group.sim().add_node();
  std::optional<Status> answer;
  const GuestEntry entry(node.loop(), node.network(), authenticator, entry_to(group.node(0), ""),
                         [&](Result<GuestEntry::Entry>& outcome) { answer = outcome.status(); });
  group.sim().run_until([&] { return answer.has_value(); }, {.time = Duration::seconds(5)});
  CHECK_THAT(answer->text(), Contains("takes no guests") && Contains("RINGLET_GUESTS"));
}

TEST_CASE("a guest with another token learns it at once") {
  SimGroup group(guests_setup(1, 1));
  group.set_token(0, "another token of rank 0");
  group.start_meeting(0);
  group.start_guest(0);
  group.sim().run_for(Duration::seconds(1));
  REQUIRE(group.refused(0));
  CHECK(group.refused(0)->code() == Errc::mismatch);
  CHECK_THAT(group.refused(0)->text(), Contains("tokens differ"));
}

TEST_CASE("a guest gives up where nobody answers") {
  SimGroup group(guests_setup(1, 1));
  group.start_guest(0);
  group.sim().run_for(Duration::seconds(11));
  REQUIRE(group.refused(0));
  CHECK(group.refused(0)->code() == Errc::timed_out);
  CHECK_THAT(group.refused(0)->text(), Contains("10.0.0.1:5000") && Contains("refused"));
}

TEST_CASE("guests that are missing are counted") {
  GroupSetup setup = guests_setup(2, 3);
  setup.connect_timeout = Duration::seconds(5);
  SimGroup group(setup);
  group.start_meeting(0);
  const bool native_missing = GENERATE(false, true);
  if (!native_missing) group.start_meeting(1);
  group.start_guest(0);
  REQUIRE(group.sim().run_until([&] { return group.met(0).has_value(); }, {.time = Duration::seconds(8)}) == RunEnd::done);
  CHECK(group.met(0)->code() == Errc::timed_out);
  CHECK_THAT(group.met(0)->text(), Contains("1 of 3 guests are here"));
  if (native_missing) CHECK_THAT(group.met(0)->text(), Contains("no connection with rank 1"));
  CHECK(group.met(0)->rank() == (native_missing ? 1 : -1));
  // The guest that waited is told, too.
  group.sim().run_for(Duration::seconds(2));
  REQUIRE(group.met(2));
  CHECK_THAT(group.met(2)->text(), Contains("1 of 3 guests are here"));
}

TEST_CASE("native ranks must agree on the number of guests") {
  GroupSetup setup = guests_setup(3, 1);
  SimGroup group(setup);
  WorldOptions wrong = group.options(1);
  wrong.guests = 2;
  group.make_world(1, wrong);
  group.start_meeting(0);
  group.start_meeting(1);
  REQUIRE(group.sim().run_until([&] { return group.met(0) && group.met(1); }, {.time = Duration::seconds(5)}) == RunEnd::done);
  CHECK(group.met(0)->code() == Errc::mismatch);
  CHECK_THAT(group.met(0)->text(), Contains("rank 1 was started for 2 guests, rank 0 for 1") && Contains("RINGLET_GUESTS"));
}

TEST_CASE("native ranks on the coordinator's own loopback are reached by guests on other machines") {
  SimWorld sim(3);
  SimNode& home = sim.add_node();
  SimNode& phone = sim.add_node();
  TestAuthenticator authenticator(1, kSimToken);
  struct Native {
    std::unique_ptr<IncomingLinks> incoming;
    std::unique_ptr<World> world;
    std::unique_ptr<Meeting> meeting;
  };
  std::array<Native, 2> natives;
  int met = 0;
  for (int rank = 0; rank < 2; ++rank) {
    Native& native = natives[static_cast<std::size_t>(rank)];
    WorldOptions options;
    options.rank = rank;
    options.size = 3;
    options.guests = 1;
    options.kernels = simd::find("");
    MeetingOptions meeting;
    meeting.coordinator = {"127.0.0.1", 5000};
    meeting.listen_at = {"0.0.0.0", 0};
    native.incoming = std::make_unique<IncomingLinks>(home.loop(), authenticator);
    native.world = std::make_unique<World>(home.loop(), options);
    native.meeting = std::make_unique<Meeting>(home.loop(), home.network(), authenticator, native.incoming.get(), *native.world, meeting);
    native.meeting->start([&met](const Status& status) { met += status.ok() ? 1 : 100; });
  }
  std::unique_ptr<World> world;
  std::unique_ptr<Meeting> meeting;
  const GuestEntry entry(phone.loop(), phone.network(), authenticator, entry_to(home, "phone"), [&](Result<GuestEntry::Entry>& outcome) {
    REQUIRE(outcome.ok());
    WorldOptions options;
    options.kernels = simd::find("");
    world = std::make_unique<World>(phone.loop(), outcome.value().world_options(options));
    world->adopt(std::move(outcome).value().session, 0);
    MeetingOptions waiting;
    waiting.coordinator = {home.host(), 5000};
    meeting = std::make_unique<Meeting>(phone.loop(), phone.network(), authenticator, nullptr, *world, waiting);
    meeting->start([&met](const Status& status) { met += status.ok() ? 1 : 100; });
  });
  REQUIRE(sim.run_until([&] { return met == 3; }, {.time = Duration::seconds(10)}) == RunEnd::done);
  CHECK_THAT(natives[1].world->rank_name(2), Contains("phone, " + phone.host()));
}

TEST_CASE("names for people are printable and bounded") {
  CHECK(name_for_people("Chromium on Linux", "10.0.0.9:4711") == "Chromium on Linux, 10.0.0.9:4711");
  CHECK(name_for_people("", "10.0.0.9:4711") == "10.0.0.9:4711");
  const std::string euros = name_for_people(
      [] {
        std::string text;
        for (int i = 0; i < 100; ++i) text += "\xe2\x82\xac";
        return text;
      }(),
      "x");
  CHECK(euros.size() == 78 + 3);
}
