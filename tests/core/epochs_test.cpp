// Tests of the epochs of a world whose ranks are lost.
#include <catch2/catch.hpp>

#include "sim/sim_random.hpp"
#include "tests/core/epoch_crew.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

TEST_CASE("when processes end, all the others go on together") {
  for (const auto seed : seeds(300)) {
    CAPTURE(seed);
    SimRandom random(seed);
    GroupSetup setup = random_setup(random, seed);
    for (int rank = 0; rank < setup.size && seed % 4 == 1; ++rank) setup.machines.push_back(rank / 2);
    Crew crew(setup, OnSplit::wait);
    const auto losses = 1 + random.below(static_cast<std::uint64_t>(setup.size - 1));
    for (std::uint64_t loss = 0; loss < losses; ++loss)
      crew.end(static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size))), ending(random),
               Duration::microseconds(static_cast<std::int64_t>(random.below(random.below(2) != 0 ? 3'000 : 100'000))));
    CAPTURE(setup.size, crew.gone);
    crew.run_for(Duration::seconds(3));
    crew.check_goes_on(crew.living());
  }
}

TEST_CASE("a rank whose epochs begin late has not missed what the others have asked it") {
  GroupSetup setup;
  setup.size = 3;
  setup.seed = 1;
  const int ended = GENERATE(0, 1);
  CAPTURE(ended);
  Crew crew(setup, OnSplit::wait, Duration::seconds(2), ended, Duration::milliseconds(20));
  // Less than a rank waits until it asks again.
  crew.run_for(Duration::seconds(1));
  crew.check_goes_on(crew.living());
}

TEST_CASE("in every epoch all ranks know the doors of the native ones, however they have met") {
  for (const bool with_roster : {false, true})
    for (const int guests : {0, 2}) {
      CAPTURE(with_roster, guests);
      GroupSetup setup;
      setup.size = 4 + guests;
      setup.world.guests = guests;
      setup.with_roster = with_roster;
      setup.seed = 3;
      Crew crew(setup, OnSplit::wait);
      const auto check_doors = [&](const Origins& members, int epoch) {
        for (const int rank : members) {
          World& world = crew.survivor(rank).epochs().world();
          REQUIRE(world.options().epoch == static_cast<std::uint32_t>(epoch));
          for (std::size_t peer = 0; peer < members.size(); ++peer)
            CHECK(world.door(static_cast<int>(peer)) == crew.group.door(members[peer]));
          for (int guest = world.options().natives(); guest < world.options().size; ++guest) CHECK(world.door(guest).port == 0);
        }
      };
      check_doors(crew.living(), 0);
      for (const Visitor& guest : crew.visitors)
        for (int rank = 0; rank < crew.natives; ++rank) CHECK(guest.world().door(rank) == crew.group.door(rank));
      crew.end(1, StopKind::closes_links, {});
      crew.run_for(Duration::milliseconds(500));
      check_doors(crew.living(), 1);
      crew.end(0, StopKind::closes_links, {});
      crew.run_for(Duration::milliseconds(500));
      check_doors(crew.living(), 2);
    }
}

TEST_CASE("the next epoch begins some round trips after a process has ended") {
  for (const int size : {2, 3, 5}) {
    GroupSetup setup;
    setup.size = size;
    setup.paths = PathOptions::calm();
    for (const int victim : {0, size - 1}) {
      CAPTURE(size, victim);
      Crew crew(setup, OnSplit::wait);
      crew.run_for(Duration::milliseconds(20));
      crew.end(victim, StopKind::closes_links, {});
      crew.run_for(Duration::milliseconds(5));
      for (const int rank : crew.living()) CHECK(crew.survivor(rank).epochs().world().options().epoch == 1);
      crew.run_for(Duration::milliseconds(200));
      crew.check_goes_on(crew.living());
    }
  }
}

TEST_CASE("a process that ends as soon as the ranks have met is missed by nobody") {
  for (const int size : {2, 3, 5})
    for (const int victim : {0, size - 1}) {
      CAPTURE(size, victim);
      GroupSetup setup;
      setup.size = size;
      setup.paths = PathOptions::calm();
      Crew crew(setup, OnSplit::wait, Duration::seconds(2), victim);
      crew.run_for(Duration::milliseconds(500));
      crew.check_goes_on(crew.living());
    }
}

TEST_CASE("a majority goes on without ranks that have fallen silent") {
  for (const auto seed : seeds(60)) {
    CAPTURE(seed);
    SimRandom random(seed + 1000);
    GroupSetup setup;
    setup.size = static_cast<int>(3 + random.below(4));
    setup.seed = seed;
    Crew crew(setup, OnSplit::wait);
    const auto losses = 1 + random.below(static_cast<std::uint64_t>((setup.size - 1) / 2));
    while (crew.gone.size() < losses)
      crew.end(static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size))), StopKind::falls_silent,
               Duration::microseconds(static_cast<std::int64_t>(random.below(100'000))));
    CAPTURE(setup.size, crew.gone);
    crew.run_for(Duration::seconds(20));
    crew.check_goes_on(crew.living());
  }
}

TEST_CASE("of two ranks whose link is cut, each waits or goes on alone, as the policy says") {
  for (const OnSplit policy : {OnSplit::wait, OnSplit::fork}) {
    GroupSetup setup;
    setup.seed = 5;
    Crew crew(setup, policy);
    crew.group.sim().cut(crew.group.node(0), crew.group.node(1)).in(Duration::milliseconds(5));
    crew.run_for(Duration::seconds(30));
    for (const int rank : {0, 1}) {
      CAPTURE(rank);
      CHECK(crew.survivor(rank).failures().size() == 1);
      CHECK(crew.survivor(rank).members().size() == (policy == OnSplit::wait ? 2 : 1));
      CHECK(crew.survivor(rank).world().failure().ok() == (policy == OnSplit::fork));
    }
    if (policy == OnSplit::fork) CHECK(crew.survivor(0).lineage() != crew.survivor(1).lineage());
  }
}

TEST_CASE("a rank that stood still learns that the others went on without it") {
  for (const auto seed : seeds(20)) {
    CAPTURE(seed);
    GroupSetup setup;
    setup.size = 3;
    setup.seed = seed;
    Crew crew(setup, OnSplit::fork);
    const int still = static_cast<int>(seed % 3);
    crew.group.sim().freeze(crew.group.node(still)).in(Duration::milliseconds(20));
    crew.run_for(Duration::seconds(6));
    crew.gone.insert(still);
    crew.check_goes_on(crew.living());
    crew.group.sim().resume(crew.group.node(still)).now();
    crew.run_for(Duration::seconds(30));
    CHECK(crew.survivor(still).failures().size() == 1);
    CHECK(crew.survivor(still).left_out());
    crew.check_goes_on(crew.living());
  }
}

TEST_CASE("of two ranks one goes on at once when the other wakes, which learns that") {
  for (const OnSplit policy : {OnSplit::wait, OnSplit::fork})
    for (const int still : {0, 1})
      for (const auto pause : {3, 9, 14}) {
        CAPTURE(still, pause);
        GroupSetup setup;
        setup.seed = 5;
        Crew crew(setup, policy);
        crew.group.sim().freeze(crew.group.node(still)).in(Duration::milliseconds(20));
        crew.run_for(Duration::seconds(pause));
        crew.gone.insert(still);
        // The one that is left alone has waited for ten seconds after two of silence.
        if (policy == OnSplit::fork && pause == 14) crew.check_goes_on({1 - still});
        crew.group.sim().resume(crew.group.node(still)).now();
        crew.run_for(Duration::milliseconds(500));
        CHECK(crew.survivor(still).left_out());
        crew.check_goes_on({1 - still});
        CHECK((crew.survivor(1 - still).lineage() == 0) == (policy == OnSplit::wait || pause < 12));
      }
}

TEST_CASE("a rank that wakes beside the only one of the others that is left learns that this one goes on") {
  for (const auto seed : seeds(20)) {
    CAPTURE(seed);
    GroupSetup setup;
    setup.size = 4;
    setup.seed = seed;
    Crew crew(setup, OnSplit::wait);
    const int still = static_cast<int>(seed % 4), other = static_cast<int>((seed + 1 + seed / 4 % 3) % 4);
    crew.group.sim().freeze(crew.group.node(still)).in(Duration::milliseconds(20));
    for (int rank = 0; rank < 4; ++rank)
      if (rank != still && rank != other) crew.end(rank, StopKind::closes_links, Duration::milliseconds(30));
    crew.run_for(Duration::seconds(4));
    crew.gone.insert(still);
    crew.group.sim().resume(crew.group.node(still)).now();
    crew.run_for(Duration::seconds(3));
    CHECK(crew.survivor(still).left_out());
    crew.check_goes_on({other});
  }
}

TEST_CASE("a rank that is slow when another one is lost is waited for, and one that stands still holds nobody up for long") {
  for (const auto seed : seeds(20))
    for (const bool wakes : {true, false}) {
      CAPTURE(seed, wakes);
      GroupSetup setup;
      setup.size = 5;
      setup.seed = seed;
      // As native ranks have it if it is not set.
      Crew crew(setup, OnSplit::wait, Duration::seconds(4));
      const int victim = static_cast<int>(seed % 5), slow = static_cast<int>((seed % 5 + 1 + seed / 5 % 4) % 5);
      crew.run_for(Duration::milliseconds(20));
      crew.end(victim, StopKind::closes_links, {});
      crew.group.sim().freeze(crew.group.node(slow)).now();
      if (wakes) {
        crew.group.sim().resume(crew.group.node(slow)).in(Duration::milliseconds(1500));
      } else {
        crew.gone.insert(slow);
      }
      crew.run_for(Duration::seconds(6));
      crew.check_goes_on(crew.living());
    }
}

TEST_CASE("whatever breaks, no two ranks disagree about an epoch") {
  for (const auto seed : seeds(400)) {
    CAPTURE(seed);
    SimRandom random(seed + 7777);
    const GroupSetup setup = random_setup(random, seed);
    Crew crew(setup, random.below(2) == 0 ? OnSplit::wait : OnSplit::fork);
    SimWorld& sim = crew.group.sim();
    const auto any = [&] { return static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size))); };
    const auto soon = [&] {
      return Duration::microseconds(static_cast<std::int64_t>(random.below(random.below(2) != 0 ? 50'000 : 6'000'000)));
    };
    for (auto faults = 1 + random.below(5); faults > 0; --faults) {
      const int one = any(), other = any();
      switch (random.below(5)) {
        case 0:
          if (crew.gone.size() + 1 < static_cast<std::size_t>(setup.size)) crew.end(one, ending(random), soon());
          break;
        case 1:
          sim.freeze(crew.group.node(one)).in(soon());
          sim.resume(crew.group.node(one)).in(Duration::seconds(7) + soon());
          break;
        case 2:
          if (one == other) break;
          sim.cut(crew.group.node(one), crew.group.node(other)).in(soon());
          if (random.below(2) != 0) sim.mend(crew.group.node(one), crew.group.node(other)).in(Duration::seconds(7) + soon());
          break;
        case 3:
          if (one != other) sim.reset(crew.group.node(one), crew.group.node(other)).in(soon());
          break;
        default:
          if (one != other) sim.stall(crew.group.node(one), crew.group.node(other), soon()).in(soon());
      }
    }
    crew.run_for(Duration::seconds(40));
    crew.check_records();
    // No operation hangs: where its world has failed it has ended.
    for (int rank = 0; rank < setup.size; ++rank) {
      CAPTURE(rank);
      if (!crew.is_gone(rank)) CHECK((crew.survivor(rank).pending() == 0 || crew.survivor(rank).world().failure().ok()));
    }
  }
}

TEST_CASE("whoever is lost, the native ranks go on without the guests, who learn it") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    SimRandom random(seed + 4000);
    GroupSetup setup = random_setup(random, seed);
    setup.world.guests = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size - 1)));
    Crew crew(setup, OnSplit::wait);
    const int victim = static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size)));
    // A guest may fall silent, too, but of two native ranks one goes on only where the other one's end is proved.
    const StopKind kind = victim >= crew.natives && random.below(3) == 0 ? StopKind::falls_silent : ending(random);
    crew.end(victim, kind, Duration::microseconds(static_cast<std::int64_t>(random.below(100'000))));
    CAPTURE(setup.size, setup.world.guests, victim);
    crew.run_for(Duration::seconds(kind == StopKind::falls_silent ? 8 : 4));
    crew.check_goes_on(crew.living());
    for (const int rank : crew.living()) CHECK(crew.survivor(rank).world().options().guests == 0);
    for (int guest = crew.natives; guest < setup.size; ++guest) {
      CAPTURE(guest);
      const auto& failure = crew.visitors[static_cast<std::size_t>(guest - crew.natives)].failure();
      if (crew.is_gone(guest)) continue;
      REQUIRE(failure.has_value());
      CHECK(failure->code() == Errc::peer_lost);
    }
  }
}

TEST_CASE("the others go on without a member that breaks the protocol") {
  const std::vector<wire::ControlMessage> not_due{wire::Join{}, wire::PartsQuestion{9}, wire::PartsChange{9, {}, {}}};
  for (const auto& message : not_due)
    for (const int culprit : {0, 1, 3}) {
      CAPTURE(message.index(), culprit);
      // Rank 0 may ask about parts.
      if (culprit == 0 && !std::holds_alternative<wire::Join>(message)) continue;
      GroupSetup setup;
      setup.size = 4;
      setup.seed = 6;
      setup.world.placement.parts = PartsPolicy::passive;
      Crew crew(setup, OnSplit::wait);
      crew.run_for(Duration::milliseconds(20));
      for (int rank = 0; rank < setup.size; ++rank)
        if (rank != culprit) crew.survivor(culprit).world().send_control(rank, message);
      crew.run_for(Duration::seconds(10));
      crew.gone.insert(culprit);
      crew.check_records();
      for (const int rank : crew.living()) {
        CAPTURE(rank);
        Survivor& survivor = crew.survivor(rank);
        CHECK(survivor.members() == crew.living());
        CHECK(survivor.world().failure().ok());
        CHECK(survivor.world().options().epoch == 1);
        REQUIRE(survivor.failures().size() == 1);
        CHECK(survivor.failures()[0].code() == Errc::protocol_error);
        CHECK(survivor.failures()[0].rank() == culprit);
      }
      CHECK(crew.survivor(culprit).left_out());
    }
}

TEST_CASE("what a guest does wrong ends the epoch and nothing else") {
  for (const auto seed : seeds(20)) {
    CAPTURE(seed);
    GroupSetup setup;
    setup.size = 3;
    setup.world.guests = 1;
    setup.seed = seed;
    SimGroup group(Crew::elastic(setup));
    group.meet();
    // The guest adds other numbers of elements than the others, or closes its world in the midst of an operation.
    std::vector<std::int32_t> mine(4, 1), theirs(seed % 2 == 0 ? 5 : 4, 1);
    Outcome& first = group.start(0, 0, make_all_reduce(ReduceOp::sum, mine, mine, 1, group.options(0)));
    Outcome& guest = group.start(2, 0, make_all_reduce(ReduceOp::sum, theirs, theirs, 1, group.options(2)));
    if (seed % 2 != 0) group.world(2).close([] {});
    REQUIRE(group.sim().run_until([&] { return first.done() && guest.done(); }) == RunEnd::done);
    CHECK(first.status.code() == Errc::peer_lost);
    CHECK(first.status.rank() == 2);
  }
}
