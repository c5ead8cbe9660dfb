#include <catch2/catch.hpp>
#include <cstring>

#include "sim/sim_random.hpp"
#include "tests/core/adder.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"
#include "tests/core/victim.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

TEST_CASE("when a rank goes, every survivor's operation ends with its name") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    SimRandom random(seed + 5);
    GroupSetup setup;
    setup.size = static_cast<int>(2 + random.below(5));
    setup.seed = seed;
    setup.encrypts = seed % 2 != 0;
    if (random.below(2) != 0) setup.paths = rough_paths();
    setup.world.limits = {random.below(2) * 2000, 4000};
    setup.world.segment_bytes = 1024;
    setup.world.heartbeat_timeout = Duration::seconds(2);
    SimGroup group(setup);
    group.meet();
    const std::size_t count = random.below(5000);
    const int victim = static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size)));
    const auto fault = static_cast<Fault>(random.below(static_cast<std::uint64_t>(Fault::kCount)));
    CAPTURE(setup.size, count, victim, static_cast<int>(fault));
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
      CHECK(group.world(adder.rank()).failure() == adder.last());
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

TEST_CASE("a cut link is noticed by both its ends, each of which may blame the other") {
  for (const auto seed : seeds(20)) {
    CAPTURE(seed);
    GroupSetup setup;
    setup.size = 4;
    setup.seed = seed;
    setup.encrypts = seed % 2 != 0;
    setup.world.heartbeat_timeout = Duration::seconds(2);
    SimGroup group(setup);
    group.meet();
    std::deque<Adder> adders;
    for (int rank = 0; rank < setup.size; ++rank) adders.emplace_back(group, rank, 100, 1'000'000);
    group.sim().cut(group.node(1), group.node(2)).in(Duration::milliseconds(3));
    REQUIRE(group.sim().run_until([&] { return std::all_of(adders.begin(), adders.end(), [](const Adder& a) { return a.failed(); }); },
                                  {.time = Duration::seconds(10)}) == RunEnd::done);
    for (const Adder& adder : adders) {
      CHECK(adder.last().code() == Errc::peer_lost);
      CHECK((adder.last().rank() == 1 || adder.last().rank() == 2));
      CHECK_THAT(adder.last().text(), Contains("silent"));
    }
  }
}

TEST_CASE("a rank that says nothing is there as long as it takes what it is sent, and then its loss names both ends") {
  GroupSetup setup;
  setup.paths = PathOptions::calm();
  setup.paths.bytes_per_second = {20'000, 20'000};
  setup.paths.send_buffer_bytes = setup.paths.receive_buffer_bytes = {4096, 4096};
  setup.world.heartbeat_timeout = Duration::seconds(2);
  setup.world.limits = {64, 128};
  SimGroup group(setup);
  RawPeer peer(group.sim());
  group.start_meeting(0);
  peer.use_token(kSimToken);
  const Script script = Script().join().call(0, sum_of(300'000, Algorithm::ring));
  peer.dial_until_linked(group.listening_address(0), [&] { peer.send(script.bytes()); });
  REQUIRE(group.sim().run_until([&] { return group.met(0).has_value(); }, {.time = Duration::seconds(10)}) == RunEnd::done);
  std::vector<float> values(300'000);
  const Outcome& outcome = group.start(0, 0, make_all_reduce(ReduceOp::sum, values, values, 1, group.options(0)));
  const Instant start = group.sim().now();
  REQUIRE(group.sim().run_until([&] { return outcome.done(); }, {.time = Duration::seconds(100)}) == RunEnd::done);
  CHECK(group.sim().now() - start > Duration::seconds(30));
  CHECK(group.sim().now() - start < Duration::seconds(34));
  CHECK(outcome.status.code() == Errc::peer_lost);
  CHECK_THAT(outcome.status.text(), Contains("rank 1") && Contains("silent towards rank 0"));
}

TEST_CASE("an idle group notices a silent rank by its heartbeats, and lives on for hours without") {
  GroupSetup setup;
  setup.size = 3;
  setup.world.heartbeat_timeout = Duration::seconds(2);
  SimGroup group(setup);
  group.meet();
  group.sim().run_for(Duration::seconds(600));
  for (int rank = 0; rank < 3; ++rank) CHECK(group.world(rank).failure().ok());
  group.sim().stop(group.node(1), StopKind::falls_silent).now();
  group.sim().run_for(Duration::seconds(3));
  for (const int rank : {0, 2}) {
    CHECK(group.world(rank).failure().code() == Errc::peer_lost);
    CHECK(group.world(rank).failure().rank() == 1);
  }
}

TEST_CASE("slow is not dead: a transfer may take far longer than the heartbeat timeout") {
  GroupSetup setup;
  setup.size = 3;
  setup.paths = PathOptions::calm();
  setup.paths.bytes_per_second = {20'000, 20'000};
  setup.paths.send_buffer_bytes = setup.paths.receive_buffer_bytes = {4096, 4096};
  setup.world.heartbeat_timeout = Duration::seconds(2);
  SimGroup group(setup);
  group.meet();
  std::vector<float> values(300'000, 1.0F);
  std::vector<std::vector<float>> all(3, values);
  std::vector<Outcome*> outcomes;
  for (int rank = 0; rank < 3; ++rank) {
    auto& own = all[static_cast<std::size_t>(rank)];
    outcomes.push_back(&group.start(rank, 0, make_all_reduce(ReduceOp::sum, own, own, 1, group.options(rank))));
  }
  const Instant start = group.sim().now();
  REQUIRE(group.run_until_done());
  CHECK(group.sim().now() - start > Duration::seconds(30));
  for (const Outcome* outcome : outcomes) CHECK(outcome->status.ok());
  for (const auto& own : all) CHECK(own == std::vector<float>(300'000, 3.0F));
  group.close_cleanly();
}

TEST_CASE("a process that stood still does not take the others for dead") {
  GroupSetup setup;
  setup.world.heartbeat_timeout = Duration::seconds(10);
  SimGroup group(setup);
  group.meet();
  group.sim().freeze(group.node(0)).now();
  group.sim().resume(group.node(0)).in(Duration::seconds(9));
  group.sim().run_for(Duration::seconds(60));
  CHECK(group.world(0).failure().ok());
  CHECK(group.world(1).failure().ok());
  group.close_cleanly();
}

TEST_CASE("a rank that leaves in order ends only what still needs it") {
  GroupSetup setup;
  setup.size = 3;
  SimGroup group(setup);
  group.meet();
  std::vector<std::vector<float>> values(3, std::vector<float>(100));
  values[0].assign(100, 7.0F);
  // The root of a small broadcast sends at once and is done; the other ranks receive it later.
  Outcome& root = group.start(0, 0, make_broadcast(values[0], 0, group.options(0)));
  REQUIRE(group.run_until_done());
  CHECK(root.status.ok());
  group.close(0);
  group.sim().run_for(Duration::milliseconds(100));
  std::vector<Outcome*> others;
  for (const int rank : {1, 2})
    others.push_back(&group.start(rank, 0, make_broadcast(values[static_cast<std::size_t>(rank)], 0, group.options(rank))));
  REQUIRE(group.run_until_done());
  for (const Outcome* outcome : others) CHECK(outcome->status.ok());
  CHECK(values[1] == values[0]);
  CHECK(values[2] == values[0]);
  Outcome& barrier = group.start(1, 0, make_barrier(group.options(1)));
  REQUIRE(group.run_until_done());
  CHECK(barrier.status.code() == Errc::peer_lost);
  CHECK(barrier.status.rank() == 0);
  CHECK_THAT(barrier.status.text(), Contains("left") && Contains("barrier"));
}

TEST_CASE("closing with operations pending cancels them here and ends the group elsewhere") {
  GroupSetup setup;
  setup.size = 3;
  SimGroup group(setup);
  group.meet();
  Outcome& own = group.start(1, 0, make_barrier(group.options(1)));
  Outcome& queued = group.start(1, 0, make_barrier(group.options(1)));
  Outcome& theirs = group.start(2, 5, make_barrier(group.options(2)));
  group.sim().run_for(Duration::milliseconds(10));
  group.close(1);
  REQUIRE(group.run_until_done(Duration::seconds(5)));
  CHECK(own.status.code() == Errc::cancelled);
  CHECK(queued.status.code() == Errc::cancelled);
  CHECK(theirs.status.code() == Errc::peer_lost);
  CHECK(theirs.status.rank() == 1);
  Outcome& late = group.start(2, 0, make_barrier(group.options(2)));
  REQUIRE(group.run_until_done());
  CHECK(late.status == theirs.status);
}

TEST_CASE("a rank that has left keeps its link until all that it sent has arrived, however slow the network is") {
  GroupSetup setup;
  setup.world.heartbeat_timeout = Duration::seconds(3);
  SimGroup group(setup);
  group.meet();
  group.sim().limit_port(group.node(1), 20'000);
  std::vector<float> values(50'000, 1.0F);
  Outcome& sent = group.start(0, 0, make_broadcast(values, 0, group.options(0)));
  std::vector<float> received(values.size());
  Outcome& got = group.start(1, 0, make_broadcast(received, 0, group.options(1)));
  REQUIRE(group.sim().run_until([&] { return sent.done(); }, {.time = Duration::seconds(30)}) == RunEnd::done);
  CHECK_FALSE(got.done());
  group.close(0);
  REQUIRE(group.run_until_done());
  CHECK(got.status.ok());
  CHECK(received == values);
}

TEST_CASE("closing does not wait longer than the heartbeat timeout for a rank that is silent") {
  SimGroup group(GroupSetup{});
  group.meet();
  group.sim().stop(group.node(1), StopKind::falls_silent).now();
  group.close(0);
  REQUIRE(group.sim().run_until([&] { return group.closed(0); }, {.time = Duration::milliseconds(10'200)}) == RunEnd::done);
  Outcome& late = group.start(0, 0, make_barrier(group.options(0)));
  REQUIRE(group.run_until_done());
  CHECK(late.status.code() == Errc::cancelled);
}
