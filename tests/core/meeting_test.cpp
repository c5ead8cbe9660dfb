#include <catch2/catch.hpp>

#include "sim/sim_random.hpp"
#include "tests/core/raw_peer.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

bool all_met(SimGroup& group) {
  for (int rank = 0; rank < group.size(); ++rank)
    if (!group.met(rank)) return false;
  return true;
}

GroupSetup meeting_setup(std::uint64_t seed, bool with_roster) {
  GroupSetup setup;
  setup.size = static_cast<int>(2 + seed % 6);
  setup.seed = seed;
  setup.with_roster = with_roster;
  return setup;
}

}  // namespace

TEST_CASE("ranks meet in any order, with delays, failed dials and strangers") {
  const bool with_roster = GENERATE(false, true);
  for (const auto seed : seeds(100)) {
    CAPTURE(seed, with_roster);
    GroupSetup setup = meeting_setup(seed, with_roster);
    setup.paths.dial_refused_per_mille = 200;
    setup.paths.dial_hangs_per_mille = seed % 3 == 0 ? 50 : 0;
    SimGroup group(setup);
    SimRandom random(seed + 99);
    for (int rank = 0; rank < setup.size; ++rank)
      group.node(rank).loop().after(Duration::milliseconds(static_cast<std::int64_t>(random.below(3000))),
                                    [&group, rank] { group.start_meeting(rank); });
    RawPeer stranger(group.sim());
    if (seed % 2 == 0) {
      stranger.dial_until_linked(group.listening_address(0), [&] {
        Values garbage(random.below(300));
        for (auto& byte : garbage) byte = static_cast<std::byte>(random.next());
        stranger.send(garbage);
      });
    }
    REQUIRE(group.sim().run_until([&] { return all_met(group); }) == RunEnd::done);
    for (int rank = 0; rank < setup.size; ++rank) {
      INFO(group.met(rank)->text());
      REQUIRE(group.met(rank)->ok());
    }
    group.close_cleanly();
  }
}

TEST_CASE("a rank that never comes is named by the others") {
  const bool with_roster = GENERATE(false, true);
  GroupSetup setup;
  setup.size = 4;
  setup.with_roster = with_roster;
  setup.connect_timeout = Duration::seconds(5);
  SimGroup group(setup);
  for (const int rank : {0, 1, 3}) group.start_meeting(rank);
  REQUIRE(group.sim().run_until([&] { return group.met(0) && group.met(1) && group.met(3); }, {.time = Duration::seconds(8)}) ==
          RunEnd::done);
  CHECK(group.met(0)->code() == Errc::timed_out);
  CHECK_THAT(group.met(0)->text(), Contains("rank 2") && Contains("5000 ms"));
  CHECK(group.met(0)->rank() == 2);
  for (const int rank : {1, 3}) CHECK(group.met(rank)->code() == Errc::timed_out);
}

TEST_CASE("of the ranks that are not ready the one that the others wait for is named, with what each has said") {
  const bool stands_still = GENERATE(false, true);
  CAPTURE(stands_still);
  GroupSetup setup;
  setup.size = 4;
  setup.connect_timeout = Duration::seconds(8);
  SimGroup group(setup);
  std::vector<std::string> told;
  group.meeting_options(0).on_waiting = [&](const std::string& text) { told.push_back(text); };
  for (const int rank : {0, 1, 2, 3}) group.start_meeting(rank);
  // Rank 2 has joined, but the others do not reach it.
  if (stands_still) {
    group.sim().freeze(group.node(2)).when([&] { return group.has_world(0) && group.world(0).has_session(2); });
  } else {
    for (const int other : {1, 3}) group.sim().cut(group.node(2), group.node(other)).now();
  }
  REQUIRE(group.sim().run_until([&] { return group.met(0) && group.met(1) && group.met(3); }, {.time = Duration::seconds(12)}) ==
          RunEnd::done);
  REQUIRE_FALSE(told.empty());
  CHECK_THAT(told.back(), Contains("rank 1 (has not met rank 2)") && Contains("rank 3 (has not met rank 2)"));
  for (const int rank : {0, 1, 3}) {
    INFO(group.met(rank)->text());
    CHECK(group.met(rank)->code() == Errc::timed_out);
    CHECK(group.met(rank)->rank() == 2);
    CHECK_THAT(group.met(rank)->text(), Contains(stands_still ? "rank 2 (says nothing)" : "rank 2 (has not met rank 1, 3)"));
  }
}

TEST_CASE("of many ranks that are not ready some are named, and the others counted") {
  GroupSetup setup;
  setup.size = 20;
  setup.connect_timeout = Duration::seconds(8);
  SimGroup group(setup);
  std::vector<std::string> told;
  group.meeting_options(0).on_waiting = [&](const std::string& text) { told.push_back(text); };
  for (int rank = 0; rank < setup.size; ++rank) group.start_meeting(rank);
  for (int rank = 1; rank < setup.size; ++rank)
    for (int other = 1; other < rank; ++other) group.sim().cut(group.node(rank), group.node(other)).now();
  REQUIRE(group.sim().run_until([&] { return group.met(0).has_value(); }, {.time = Duration::seconds(12)}) == RunEnd::done);
  REQUIRE_FALSE(told.empty());
  CHECK_THAT(told.back(), Contains("not ready: rank 1 (has not met rank 2, 3, 4, 5, 6, 7, 8, 9 and 10 more), rank 2 ("));
  CHECK_THAT(told.back(), Catch::EndsWith(" and 11 more"));
}

TEST_CASE("another world size is told to every rank that came") {
  GroupSetup setup;
  setup.size = 3;
  SimGroup group(setup);
  WorldOptions wrong = group.options(2);
  wrong.size = 5;
  group.make_world(2, wrong);
  group.start_meeting(0);
  group.start_meeting(1);
  group.node(2).loop().after(Duration::seconds(1), [&] { group.start_meeting(2); });
  REQUIRE(group.sim().run_until([&] { return all_met(group); }, {.time = Duration::seconds(10)}) == RunEnd::done);
  for (int rank = 0; rank < 3; ++rank) {
    CAPTURE(rank);
    CHECK(group.met(rank)->code() == Errc::mismatch);
    CHECK_THAT(group.met(rank)->text(), Contains("5") && Contains("3") && Contains("rank 2"));
  }
}

TEST_CASE("a rank that is not elastic among others that are is told of") {
  GroupSetup setup;
  setup.world.elastic = true;
  SimGroup group(setup);
  WorldOptions wrong = group.options(1);
  wrong.elastic = false;
  group.make_world(1, wrong);
  group.start_meeting(0);
  group.start_meeting(1);
  REQUIRE(group.sim().run_until([&] { return all_met(group); }, {.time = Duration::seconds(10)}) == RunEnd::done);
  for (const int rank : {0, 1}) {
    CAPTURE(rank);
    CHECK(group.met(rank)->code() == Errc::mismatch);
    CHECK_THAT(group.met(rank)->text(), Contains("RINGLET_ELASTIC") && Contains("rank 1 is not elastic"));
  }
}

TEST_CASE("a second process with a rank that is there is refused, and the others go on") {
  GroupSetup setup;
  setup.size = 3;
  SimGroup group(setup);
  SimNode& extra = group.sim().add_node();
  WorldOptions options = group.options(1);
  World twin(extra.loop(), options);
  TestAuthenticator authenticator(9, kSimToken);
  IncomingLinks incoming(extra.loop(), authenticator);
  Meeting meeting(extra.loop(), extra.network(), authenticator, &incoming, twin, group.meeting_options(1));
  std::optional<Status> twin_met;
  group.start_meeting(0);
  group.start_meeting(1);
  extra.loop().after(Duration::seconds(1), [&] { meeting.start([&](const Status& status) { twin_met = status; }); });
  group.node(2).loop().after(Duration::seconds(3), [&] { group.start_meeting(2); });
  REQUIRE(group.sim().run_until([&] { return all_met(group) && twin_met; }, {.time = Duration::seconds(10)}) == RunEnd::done);
  for (int rank = 0; rank < 3; ++rank) CHECK(group.met(rank)->ok());
  CHECK(twin_met->code() == Errc::invalid_argument);
  CHECK_THAT(twin_met->text(), Contains("rank 1 is already there"));
}

TEST_CASE("a rank with another token cannot join and says why; the others say who was refused") {
  const std::string token = GENERATE("another token", "");
  GroupSetup setup;
  setup.size = 3;
  setup.with_roster = GENERATE(false, true);
  setup.connect_timeout = Duration::seconds(5);
  SimGroup group(setup);
  group.set_token(2, token);
  for (int rank = 0; rank < 3; ++rank) group.start_meeting(rank);
  REQUIRE(group.sim().run_until([&] { return all_met(group); }, {.time = Duration::seconds(8)}) == RunEnd::done);
  CHECK(group.met(2)->code() == Errc::mismatch);
  CHECK_THAT(group.met(2)->text(), Contains("rank 2 cannot join") && Contains("tokens differ") && Contains("RINGLET_TOKEN"));
  CHECK(group.met(0)->code() == Errc::timed_out);
  CHECK_THAT(group.met(0)->text(), Contains("no connection with rank 2") && Contains("another token") && Contains(group.node(2).host()));
}

TEST_CASE("ranks with different hostfiles do not meet") {
  GroupSetup setup;
  setup.size = 3;
  setup.with_roster = true;
  SimGroup group(setup);
  group.meeting_options(1).world_id = 78;
  for (int rank = 0; rank < 3; ++rank) group.start_meeting(rank);
  REQUIRE(group.sim().run_until([&] { return all_met(group); }, {.time = Duration::seconds(10)}) == RunEnd::done);
  for (int rank = 0; rank < 3; ++rank) {
    CAPTURE(rank, group.met(rank)->text());
    CHECK(group.met(rank)->code() == Errc::mismatch);
  }
  CHECK_THAT(group.met(1)->text(), Contains("hostfile"));
}

TEST_CASE("a rank that dies while the ranks meet is named") {
  for (const auto seed : seeds(60)) {
    GroupSetup setup = meeting_setup(seed, seed % 2 == 0);
    setup.size = 4;
    setup.connect_timeout = Duration::seconds(20);
    SimGroup group(setup);
    SimRandom random(seed);
    const int victim = static_cast<int>(random.below(4));
    CAPTURE(seed, victim);
    for (int rank = 0; rank < 4; ++rank) group.start_meeting(rank);
    group.sim().stop(group.node(victim)).in(Duration::microseconds(static_cast<std::int64_t>(random.below(3000))));
    const auto survivors_know = [&] {
      for (int rank = 0; rank < 4; ++rank)
        if (rank != victim && (!group.met(rank) || group.world(rank).failure().ok())) return false;
      return true;
    };
    REQUIRE(group.sim().run_until(survivors_know, {.time = Duration::seconds(30)}) == RunEnd::done);
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      INFO(group.world(rank).failure().text());
      // A rank that has met none of them cannot tell which it is.
      const bool met_nobody = group.world(rank).failure().code() == Errc::timed_out && group.world(rank).failure().rank() == -1;
      CHECK((group.world(rank).failure().rank() == victim || met_nobody));
    }
  }
}
