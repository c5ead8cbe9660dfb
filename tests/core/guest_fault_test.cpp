#include <catch2/catch.hpp>
#include <deque>

#include "sim/sim_random.hpp"
#include "tests/core/adder.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

TEST_CASE("when a guest or a relay goes, every survivor names it") {
  for (const auto seed : seeds(200)) {
    SimRandom random(seed + 5);
    const int natives = static_cast<int>(1 + random.below(3));
    GroupSetup setup;
    setup.world.guests = static_cast<int>(1 + random.below(5));
    setup.size = natives + setup.world.guests;
    setup.seed = seed;
    setup.encrypts = seed % 2 != 0;
    if (random.below(2) != 0) setup.paths = rough_paths();
    setup.world.limits = {random.below(2) * 2000, 4000};
    setup.world.segment_bytes = 1024;
    setup.world.heartbeat_timeout = Duration::seconds(2);
    SimGroup group(setup);
    group.meet();
    const std::size_t count = random.below(3000);
    // The victim may be a guest, the only native rank, whose end ends everything, or a relay beside other natives.
    const int victim = static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size)));
    const auto fault = static_cast<Fault>(random.below(static_cast<std::uint64_t>(Fault::kCount)));
    CAPTURE(seed, natives, setup.world.guests, count, victim, static_cast<int>(fault));
    std::deque<Adder> adders;
    for (int rank = 0; rank < setup.size; ++rank) adders.emplace_back(group, rank, count, 1'000'000);
    inject(group, fault, victim, Duration::microseconds(static_cast<std::int64_t>(random.below(20'000))));
    const auto survivors_done = [&] {
      return std::all_of(adders.begin(), adders.end(), [&](const Adder& adder) { return adder.rank() == victim || adder.failed(); });
    };
    REQUIRE(group.sim().run_until(survivors_done, {.time = Duration::seconds(40)}) == RunEnd::done);
    group.sim().run_for(Duration::seconds(1));
    for (const Adder& adder : adders) {
      if (adder.rank() == victim) continue;
      CAPTURE(adder.rank());
      INFO(adder.last().text());
      CHECK(adder.completions() == adder.started());
      CHECK(adder.last().code() == Errc::peer_lost);
      CHECK(adder.last().rank() == victim);
      if (victim >= natives) CHECK_THAT(adder.last().text(), Contains("guest ") && Contains("10.0.0."));
      group.close(adder.rank());
    }
    const auto closed = [&] {
      for (int rank = 0; rank < setup.size; ++rank)
        if (rank != victim && !group.closed(rank)) return false;
      return true;
    };
    CHECK(group.sim().run_until(closed, {.time = Duration::seconds(3)}) == RunEnd::done);
  }
}

TEST_CASE("a relay that leaves in order ends only what still needs it or what is behind it") {
  GroupSetup setup;
  setup.size = 3;
  setup.world.guests = 2;
  SimGroup group(setup);
  group.meet();
  group.close(0);
  REQUIRE(group.sim().run_until([&] { return group.closed(0); }, {.time = Duration::seconds(3)}) == RunEnd::done);
  group.destroy(0);
  group.sim().run_for(Duration::seconds(30));
  CHECK(group.world(1).failure().ok());
  CHECK(group.world(2).failure().ok());
  std::vector<float> values(5);
  Outcome& late = group.receive(1, 0, make_receive(values, 2, group.options(1)));
  REQUIRE(group.run_until_done(Duration::seconds(5)));
  CHECK(late.status.code() == Errc::peer_lost);
  CHECK(late.status.rank() == 2);
}

TEST_CASE("a guest that is lost while the others still link up is named") {
  for (const auto seed : seeds(60)) {
    GroupSetup setup;
    setup.size = 5;
    setup.world.guests = 3;
    setup.seed = seed;
    setup.encrypts = seed % 2 != 0;
    setup.connect_timeout = Duration::seconds(20);
    SimGroup group(setup);
    SimRandom random(seed);
    group.start_meeting(0);
    group.start_meeting(1);
    for (int number = 0; number < 3; ++number) group.start_guest(number);
    // The fault is timed from the moment at which the last seat is taken.
    const auto seated = [&] { return group.guest_rank(0) >= 0 && group.guest_rank(1) >= 0 && group.guest_rank(2) >= 0; };
    REQUIRE(group.sim().run_until(seated, {.time = Duration::seconds(5)}) == RunEnd::done);
    group.sim().run_for(Duration::microseconds(static_cast<std::int64_t>(300 + random.below(1500))));
    const int victim = group.guest_rank(1);
    CAPTURE(seed, victim);
    group.sim().stop(group.node(victim)).now();
    const auto survivors_know = [&] {
      for (int rank = 0; rank < 5; ++rank)
        if (rank != victim && (!group.has_world(rank) || group.world(rank).failure().ok())) return false;
      return true;
    };
    REQUIRE(group.sim().run_until(survivors_know, {.time = Duration::seconds(30)}) == RunEnd::done);
    for (int rank = 0; rank < 5; ++rank) {
      if (rank == victim) continue;
      INFO(rank << ": " << group.world(rank).failure().text());
      CHECK(group.world(rank).failure().rank() == victim);
    }
  }
}
