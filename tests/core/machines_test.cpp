// Tests of worlds in which several ranks share a machine.
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "tests/core/adder.hpp"
#include "tests/core/epoch_crew.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

GroupSetup setup_of(const std::vector<int>& machines, std::uint64_t seed = 1) {
  GroupSetup setup;
  setup.size = static_cast<int>(machines.size());
  setup.seed = seed;
  setup.machines = machines;
  return setup;
}

using Members = std::vector<std::vector<int>>;

/// Returns the ranks of each machine, as a group knows them.
Members machines_of(const WorldOptions& options) {
  Members members;
  for (int machine = 0; machine < options.topology.machines(); ++machine) members.push_back(options.topology.ranks_on(machine));
  return members;
}

/// Returns the virtual time of a sum of `count` f32 with four ranks on two machines, whose ports have 1 Gbit/s.
Duration time_of_sum(std::size_t count, PlacementPolicy policy) {
  GroupSetup setup = setup_of({0, 0, 1, 1});
  setup.paths = PathOptions::calm();
  setup.paths.bytes_per_second = {125'000'000, 125'000'000};
  setup.paths.send_buffer_bytes = setup.paths.receive_buffer_bytes = {1 << 20, 1 << 20};
  setup.world.placement.policy = policy;
  SimGroup group(setup);
  for (int rank = 0; rank < group.size(); ++rank) {
    PathOptions& inside = group.sim().path(group.node(rank), group.node(rank ^ 1));
    inside.latency = {Duration::microseconds(10), Duration::microseconds(10)};
    inside.bytes_per_second = {5'000'000'000, 5'000'000'000};
    group.sim().limit_port(group.node(rank), 125'000'000);
  }
  group.meet();
  std::vector<std::vector<float>> values(4, std::vector<float>(count, 1.0F));
  const auto start = [&] {
    for (int rank = 0; rank < group.size(); ++rank) {
      auto& own = values[static_cast<std::size_t>(rank)];
      group.start(rank, 0, make_all_reduce(ReduceOp::sum, own, own, 1, group.options(rank)));
    }
    REQUIRE(group.run_until_done());
  };
  start();
  const Instant begin = group.sim().now();
  start();
  const Duration time = group.sim().now() - begin;
  for (const auto& own : values) REQUIRE(own == std::vector<float>(count, 16.0F));
  group.close_cleanly();
  return time;
}

}  // namespace

TEST_CASE("all ranks learn who shares a machine, in the world, in its groups and in later epochs") {
  for (const bool with_roster : {false, true}) {
    CAPTURE(with_roster);
    GroupSetup setup = setup_of({4, 2, 4, 2, 7, 4});
    setup.with_roster = with_roster;
    SimGroup group(setup);
    group.meet();
    for (int rank = 0; rank < group.size(); ++rank) CHECK(machines_of(group.options(rank)) == Members{{0, 2, 5}, {1, 3}, {4}});
    const auto parts = group.split(group.groups(), {0, 1, 0, 0, 0, 1});
    CHECK(machines_of(parts[0]->options()) == Members{{0, 1}, {2}, {3}});
    // Two machines with one rank each share nothing.
    CHECK_FALSE(parts[1]->options().topology.has_shared_machines());
    const auto reversed = group.split(group.groups(), std::vector<int>(6), {5, 4, 3, 2, 1, 0});
    CHECK(machines_of(reversed[0]->options()) == Members{{0, 3, 5}, {1}, {2, 4}});
    group.close_cleanly();

    Crew crew(setup, OnSplit::wait);
    crew.end(2, StopKind::closes_links, {});
    crew.run_for(Duration::milliseconds(500));
    crew.check_goes_on({0, 1, 3, 4, 5});
    for (const int rank : crew.living()) CHECK(machines_of(crew.survivor(rank).world().options()) == Members{{0, 4}, {1, 2}, {3}});
  }
}

TEST_CASE("with guests the natives' machines count in groups of natives alone") {
  GroupSetup setup = setup_of({0, 0, 1, 1});
  setup.size = 5;
  setup.world.guests = 1;
  setup.world.machine_limits.least_bytes = 0;
  SimGroup group(setup);
  group.meet();
  const auto algorithm_of = [](const WorldOptions& options) {
    std::vector<float> values(100);
    return make_all_reduce(ReduceOp::sum, values, values, 1, options).value().call.algorithm;
  };
  for (int rank = 0; rank < group.size(); ++rank) CHECK(algorithm_of(group.options(rank)) != Algorithm::machines);
  const auto natives = group.split(group.groups(), {0, 0, 0, 0, -1});
  for (int rank = 0; rank < 4; ++rank) CHECK(algorithm_of(natives[static_cast<std::size_t>(rank)]->options()) == Algorithm::machines);
  group.close_cleanly();
}

TEST_CASE("an announcement of machines has one for each native rank, or none") {
  SimGroup group(setup_of({0, 1}));
  World& world = group.world(0);
  wire::Begin begin = placement_of({}, world.options());
  begin.machines = {0};
  CHECK(take_placement(begin, world).code() == Errc::protocol_error);
  begin.machines = {0, 2};
  CHECK(take_placement(begin, world).code() == Errc::protocol_error);
  begin.machines = {0, 0};
  CHECK(take_placement(begin, world).ok());
  CHECK(world.options().machines == std::vector<int>{0, 0});
  begin.machines = {};
  CHECK(take_placement(begin, world).ok());
  CHECK(world.options().machines.empty());
}

TEST_CASE("when a rank of a shared machine goes, at whatever moment, no operation hangs, and what ends well is right") {
  for (const auto& limits : {MachineLimits{0, 16, 1 << 20, 0, 0}, MachineLimits{0, 16, 0, 0, 0}, MachineLimits{}}) {
    const std::vector<int> machines{0, 0, 1, 1, 1};
    bool ended_well = false;
    for (std::uint64_t events = 0; !ended_well; events += std::max<std::uint64_t>(1, 100 / share_of(100))) {
      CAPTURE(events, limits.chain_bytes);
      GroupSetup setup = setup_of(machines, events);
      setup.world.machine_limits = limits;
      setup.world.segment_bytes = 1024;
      setup.world.heartbeat_timeout = Duration::seconds(2);
      SimGroup group(setup);
      group.meet();
      std::deque<Adder> adders;
      for (int rank = 0; rank < group.size(); ++rank) adders.emplace_back(group, rank, 700, 1);
      const std::uint64_t until = group.sim().event_count() + events;
      REQUIRE(group.sim().run_until([&] { return group.sim().event_count() == until; }, {.time = Duration::seconds(1)}) == RunEnd::done);
      ended_well = std::all_of(adders.begin(), adders.end(), [](const Adder& adder) { return adder.completions() == 1; });
      const int victim = static_cast<int>(events % 5);
      const bool is_silent = events % 3 == 0;
      group.sim().stop(group.node(victim), is_silent ? StopKind::falls_silent : StopKind::resets_links).now();
      const auto are_done = [&] {
        return std::all_of(adders.begin(), adders.end(),
                           [&](const Adder& adder) { return adder.rank() == victim || adder.completions() == 1; });
      };
      REQUIRE(group.sim().run_until(are_done, {.time = Duration::seconds(10)}) == RunEnd::done);
      for (const Adder& adder : adders) {
        if (adder.rank() == victim || !adder.failed()) continue;
        CHECK(adder.last().code() == Errc::peer_lost);
        CHECK(adder.last().rank() == victim);
      }
      REQUIRE(events < 20'000);
    }
  }
}

TEST_CASE("at 1 Gbit/s two machines with two ranks each add 256 KiB 1.7 times as fast by machines, and nothing slower") {
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{1} << 10, std::size_t{2} << 10, std::size_t{4} << 10, std::size_t{16} << 10,
                                  std::size_t{64} << 10, std::size_t{256} << 10, std::size_t{1} << 20, std::size_t{4} << 20}) {
    const Duration by_machines = time_of_sum(bytes / 4, PlacementPolicy::automatic), flat = time_of_sum(bytes / 4, PlacementPolicy::ring);
    CAPTURE(bytes, by_machines.nanoseconds, flat.nanoseconds);
    CHECK(by_machines <= flat);
    if (bytes == 256 << 10) CHECK(by_machines.nanoseconds * 17 <= flat.nanoseconds * 10);
  }
}
