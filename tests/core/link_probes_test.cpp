#include "core/rendezvous/link_probes.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/sim_random.hpp"
#include "tests/core/adder.hpp"
#include "tests/core/probes_setup.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

TEST_CASE("every native measures the next native and its share of the guests, and nobody else anything") {
  const auto peers = [](int rank, int size, int guests) {
    WorldOptions options;
    options.rank = rank;
    options.size = size;
    options.guests = guests;
    return peers_to_probe(options);
  };
  CHECK(peers(0, 3, 0).empty());
  CHECK(peers(0, 4, 3) == std::vector<int>{1, 2, 3});
  CHECK(peers(0, 5, 3) == std::vector<int>{1, 2, 4});
  CHECK(peers(1, 5, 3) == std::vector<int>{0, 3});
  CHECK(peers(2, 5, 3).empty());
  WorldOptions options;
  options.size = 6;
  options.guests = 2;
  options.placement.parts = PartsPolicy::measured;
  options.rank = 3;
  CHECK(peers_to_probe(options) == std::vector<int>{1, 0});
  options.rank = 1;
  CHECK(peers_to_probe(options) == std::vector<int>{3, 2, 5});
}

TEST_CASE("ranks measure their links while they meet, and all of them and their groups place alike") {
  const auto [natives, guests] = GENERATE(std::pair(1, 1), std::pair(1, 4), std::pair(3, 2), std::pair(4, 1));
  const bool with_roster = GENERATE(false, true);
  GroupSetup setup = probes_setup(natives, guests);
  setup.with_roster = with_roster;
  setup.world.limits = {1234, 56'789};
  SimGroup group(setup);
  group.meet();
  const Placement placement = group.options(0).placement;
  CHECK(placement.policy == PlacementPolicy::automatic);
  CAPTURE(natives, guests, placement.guest.latency_ns, placement.guest.ns_per_byte, placement.native.latency_ns);
  // The links have a latency of 50 us and pass 1 GB/s. Buffers of 64 KiB leave a part of that, and the loops take some time in between.
  CHECK((placement.guest.latency_ns >= 32'768 && placement.guest.latency_ns <= 65'536));
  CHECK((placement.guest.ns_per_byte >= 1.024 && placement.guest.ns_per_byte <= 4.096));
  if (natives > 1) CHECK((placement.native.latency_ns >= 32'768 && placement.native.latency_ns <= 65'536));
  if (natives == 1) CHECK(placement.native == Placement{}.native);
  for (int rank = 0; rank < group.size(); ++rank) {
    CHECK(group.options(rank).placement == placement);
    CHECK(group.world(rank).group().options().placement == placement);
    CHECK(group.options(rank).limits.exchange_bytes == 1234);
    CHECK(group.options(rank).limits.direct_bytes == 56'789);
  }
  const auto parts = group.split(group.groups(), std::vector<int>(static_cast<std::size_t>(group.size()), 0));
  CHECK(parts.back()->options().placement == placement);
  group.close_cleanly();
}

TEST_CASE("over rough networks, too, every rank makes the choices of rank 0, and sums come out") {
  for (const auto seed : seeds(60)) {
    SimRandom random(seed + 3);
    const int natives = static_cast<int>(1 + random.below(4)), guests = static_cast<int>(1 + random.below(6));
    GroupSetup setup = probes_setup(natives, guests);
    setup.seed = seed;
    setup.paths = rough_paths();
    setup.world.limits = {random.below(3000), random.below(9000)};
    setup.world.placement.policy = static_cast<PlacementPolicy>(random.below(kPlacementPolicyCount));
    CAPTURE(seed, natives, guests, name_of(setup.world.placement.policy));
    SimGroup group(setup);
    group.meet();
    const auto expected = choices(group.options(0));
    for (int rank = 1; rank < group.size(); ++rank) CHECK(choices(group.options(rank)) == expected);
    for (const std::size_t count : {1u, 700u, 4000u}) {
      std::deque<Adder> adders;
      for (int rank = 0; rank < group.size(); ++rank) adders.emplace_back(group, rank, count, 1);
      REQUIRE(group.sim().run_until([&] { return std::all_of(adders.begin(), adders.end(), [](const Adder& a) { return a.done(); }); },
                                    {.time = Duration::seconds(600)}) == RunEnd::done);
      for (const Adder& adder : adders) CHECK(adder.last().ok());
    }
    group.close_cleanly();
  }
}

TEST_CASE("dear links of one guest show in what all ranks take for guests' links") {
  GroupSetup setup = probes_setup(2, 3);
  SimGroup group(setup);
  PathOptions slow = PathOptions::calm();
  slow.latency = {Duration::milliseconds(7), Duration::milliseconds(7)};
  slow.bytes_per_second = {2'000'000, 2'000'000};
  // Guest 1 is on the fourth node, whichever seat it gets.
  for (int other = 0; other < 2; ++other)
    group.sim().path(group.guest_node(1), group.node(other)) = group.sim().path(group.node(other), group.guest_node(1)) = slow;
  group.meet();
  for (int rank = 0; rank < group.size(); ++rank) {
    CAPTURE(group.options(rank).placement.guest.latency_ns, group.options(rank).placement.guest.ns_per_byte);
    CHECK(group.options(rank).placement.guest.latency_ns == 8'388'608);
    // All bytes that are under way at a time are in a buffer at the guest before they go back.
    CHECK((group.options(rank).placement.guest.ns_per_byte >= 524 && group.options(rank).placement.guest.ns_per_byte <= 1049));
    CHECK(group.options(rank).placement.native.latency_ns <= 65'536);
  }
}

TEST_CASE("worlds of natives measure nothing and have rank 0's limits") {
  GroupSetup setup = probes_setup(3, 0);
  setup.world.limits = {1234, 56'789};
  SimGroup group(setup);
  WorldOptions other = setup.world;
  other.limits = {};
  group.make_world(1, other);
  group.meet();
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(group.options(rank).placement == Placement{});
    CHECK(group.options(rank).limits.exchange_bytes == 1234);
  }
}

TEST_CASE("what is measured is rounded, and what is not measured keeps its value") {
  WorldOptions own;
  own.placement.policy = PlacementPolicy::hub;
  const wire::Begin placement = placement_of(dearer({0, 0, 90'000, 3'100}, {0, 0, 70'000, 4'200}), own);
  CHECK(placement.policy == 2);
  CHECK(placement.order == 0);
  const double native_latency = own.placement.native.latency_ns, native_byte_ps = own.placement.native.ns_per_byte * 1000;
  CHECK(placement.costs ==
        wire::LinkCosts{static_cast<std::uint64_t>(native_latency), static_cast<std::uint64_t>(native_byte_ps), 65'536, 4'096});
  CHECK(placement_of({UINT64_MAX, UINT64_MAX, 1, 1}, own).costs.guest_byte_ps == 1);
}

TEST_CASE("a rank that is set to another placement than the others ends the meeting with both names") {
  const bool with_roster = GENERATE(false, true);
  GroupSetup setup = probes_setup(3, 1);
  setup.with_roster = with_roster;
  setup.world.placement.policy = PlacementPolicy::hub;
  SimGroup group(setup);
  WorldOptions other = setup.world;
  other.placement.policy = PlacementPolicy::ring;
  group.make_world(2, other);
  start_all(group, 3);
  const auto natives_know = [&] { return group.met(0) && group.met(1) && group.met(2); };
  REQUIRE(group.sim().run_until(natives_know, {.time = Duration::seconds(90)}) == RunEnd::done);
  for (int rank = 0; rank < 3; ++rank) {
    INFO(rank << ": " << group.met(rank)->text());
    CHECK(group.met(rank)->code() == Errc::mismatch);
    CHECK(group.met(rank)->rank() == 2);
    CHECK_THAT(group.met(rank)->text(), Contains("rank 2 has the placement 'ring'") && Contains("'hub'") && Contains("RINGLET_PLACEMENT"));
  }
}

TEST_CASE("guests are told in which order the world adds") {
  for (const auto order : {ReduceOrder::any, ReduceOrder::rank}) {
    GroupSetup setup = probes_setup(2, 2);
    setup.world.placement.order = order;
    SimGroup group(setup);
    group.meet();
    for (int rank = 0; rank < 4; ++rank) CHECK(group.options(rank).placement.order == order);
    group.close_cleanly();
  }
}

TEST_CASE("an order that this version does not know ends the meeting") {
  SimGroup group(probes_setup(1, 1));
  World& world = group.world(0);
  wire::Begin begin = placement_of({}, world.options());
  begin.order = kReduceOrderCount;
  CHECK(take_placement(begin, world).code() == Errc::protocol_error);
  begin.order = 1;
  CHECK(take_placement(begin, world).ok());
  CHECK(world.options().placement.order == ReduceOrder::rank);
}

TEST_CASE("a guest that is lost at any moment of the meeting is named, and nobody hangs") {
  for (const auto seed : seeds(150)) {
    SimRandom random(seed);
    const int natives = static_cast<int>(1 + random.below(3)), guests = static_cast<int>(1 + random.below(4));
    GroupSetup setup = probes_setup(natives, guests);
    setup.seed = seed;
    if (random.below(2) != 0) setup.paths = rough_paths();
    setup.world.heartbeat_timeout = Duration::seconds(2);
    // Until the group is complete, a guest that goes only frees its seat.
    const auto complete = [&](SimGroup& group) {
      for (int rank = 1; rank < group.size(); ++rank)
        if (!group.has_world(rank) || !group.world(0).has_session(rank)) return false;
      return true;
    };
    // This measures how long the meeting lasts after the group is complete.
    Duration length{};
    {
      SimGroup group(setup);
      start_all(group, natives);
      REQUIRE(group.sim().run_until([&] { return complete(group); }, {.time = Duration::seconds(50)}) == RunEnd::done);
      const Instant start = group.sim().now();
      REQUIRE(group.sim().run_until([&] { return group.met(0).has_value(); }, {.time = Duration::seconds(50)}) == RunEnd::done);
      length = group.sim().now() - start;
    }
    SimGroup group(setup);
    start_all(group, natives);
    REQUIRE(group.sim().run_until([&] { return complete(group); }, {.time = Duration::seconds(50)}) == RunEnd::done);
    const int victim = group.guest_rank(static_cast<int>(random.below(static_cast<std::uint64_t>(guests))));
    const auto fault = static_cast<Fault>(random.below(static_cast<std::uint64_t>(Fault::kCount)));
    CAPTURE(seed, natives, guests, victim, static_cast<int>(fault));
    inject(group, fault, victim, Duration{static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(length.nanoseconds)))});
    const auto survivors_know = [&] {
      for (int rank = 0; rank < group.size(); ++rank)
        if (rank != victim && (!group.has_world(rank) || group.world(rank).failure().ok())) return false;
      return true;
    };
    REQUIRE(group.sim().run_until(survivors_know, {.time = Duration::seconds(100)}) == RunEnd::done);
    for (int rank = 0; rank < group.size(); ++rank) {
      if (rank == victim) continue;
      INFO(rank << ": " << group.world(rank).failure().text());
      CHECK(group.world(rank).failure().rank() == victim);
    }
  }
}

TEST_CASE("probes that are not due break the protocol") {
  const int kind = GENERATE(0, 1, 2);
  SimGroup group(probes_setup(1, 2));
  group.start_meeting(0);
  group.start_guest(0);
  REQUIRE(group.sim().run_until([&] { return group.guest_rank(0) == 1; }, {.time = Duration::seconds(5)}) == RunEnd::done);
  group.start_guest(1);
  REQUIRE(group.sim().run_until([&] { return group.guest_rank(1) == 2; }, {.time = Duration::seconds(5)}) == RunEnd::done);
  // A guest may not send a probe, an answer to what was not asked, or the message to begin.
  if (kind == 0) group.world(2).send_control(0, wire::LinkProbe{0, false, {}});
  if (kind == 1) group.world(2).send_control(0, wire::LinkProbe{77, true, {}});
  if (kind == 2) group.world(2).send_control(0, wire::Begin{});
  REQUIRE(group.sim().run_until([&] { return all_have_met(group); }, {.time = Duration::seconds(30)}) == RunEnd::done);
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(group.met(rank)->code() == Errc::protocol_error);
    CHECK(group.met(rank)->rank() == 2);
  }
}
