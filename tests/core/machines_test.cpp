// Tests of worlds in which several ranks share a machine.
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "tests/core/adder.hpp"
#include "tests/core/epoch_crew.hpp"
#include "tests/core/operation.hpp"
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

/// Returns the virtual time of a collective of `count` f32 among ranks on machines whose ports have 1 Gbit/s. In parts each rank has as
/// many as the others.
Duration time_of(CollectiveKind kind, std::size_t count, const std::vector<int>& machines, PlacementPolicy policy) {
  GroupSetup setup = setup_of(machines);
  setup.paths = PathOptions::calm();
  setup.paths.bytes_per_second = {125'000'000, 125'000'000};
  setup.paths.send_buffer_bytes = setup.paths.receive_buffer_bytes = {1 << 20, 1 << 20};
  setup.world.placement.policy = policy;
  SimGroup group(setup);
  for (int rank = 0; rank < group.size(); ++rank) {
    for (int other = 0; other < group.size(); ++other) {
      if (other == rank || machines[static_cast<std::size_t>(other)] != machines[static_cast<std::size_t>(rank)]) continue;
      PathOptions& inside = group.sim().path(group.node(rank), group.node(other));
      inside.latency = {Duration::microseconds(10), Duration::microseconds(10)};
      inside.bytes_per_second = {5'000'000'000, 5'000'000'000};
    }
    group.sim().limit_port(group.node(rank), 125'000'000);
  }
  group.meet();
  const std::size_t part = count / machines.size(), whole = kind == CollectiveKind::all_gather ? part * machines.size() : count;
  std::vector<std::vector<float>> values(machines.size(), std::vector<float>(whole, 1.0F));
  std::vector<std::vector<float>> parts(machines.size(), std::vector<float>(part, 1.0F));
  const auto task_of = [&](int rank) {
    auto& own = values[static_cast<std::size_t>(rank)];
    auto& own_part = parts[static_cast<std::size_t>(rank)];
    const WorldOptions& options = group.options(rank);
    switch (kind) {
      case CollectiveKind::all_gather:
        return make_all_gather(own_part, own, options);
      case CollectiveKind::reduce_scatter:
        return make_reduce_scatter(ReduceOp::sum, std::span(own).first(part * machines.size()), own_part, options);
      case CollectiveKind::reduce:
        return make_reduce(ReduceOp::sum, own, own, 0, options);
      default:
        return make_all_reduce(ReduceOp::sum, own, own, 1, options);
    }
  };
  const auto start = [&] {
    for (int rank = 0; rank < group.size(); ++rank) group.start(rank, 0, task_of(rank));
    REQUIRE(group.run_until_done());
  };
  start();
  const Instant begin = group.sim().now();
  start();
  const Duration time = group.sim().now() - begin;
  if (kind == CollectiveKind::all_reduce) REQUIRE(values[0] == std::vector<float>(count, 16.0F));
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
    const std::vector<int> machines{0, 0, 1, 1};
    const Duration by_machines = time_of(CollectiveKind::all_reduce, bytes / 4, machines, PlacementPolicy::automatic);
    const Duration flat = time_of(CollectiveKind::all_reduce, bytes / 4, machines, PlacementPolicy::ring);
    CAPTURE(bytes, by_machines.nanoseconds, flat.nanoseconds);
    CHECK(by_machines <= flat);
    if (bytes == 256 << 10) CHECK(by_machines.nanoseconds * 17 <= flat.nanoseconds * 10);
  }
}

TEST_CASE("at 1 Gbit/s parts are gathered and scattered up to twice as fast by machines, and at no size slower") {
  using Kind = CollectiveKind;
  for (const auto& machines : {std::vector<int>{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1, 1}, {0, 0, 1, 1, 2, 2}, {0, 0, 1, 2}}) {
    for (const auto kind : {Kind::all_gather, Kind::reduce_scatter, Kind::reduce}) {
      for (std::size_t kib = 1; kib <= 4096; kib *= 4) {
        const std::size_t count = (kib << 10) / 4;
        const Duration by_machines = time_of(kind, count, machines, PlacementPolicy::automatic);
        const Duration flat = time_of(kind, count, machines, PlacementPolicy::ring);
        const double ratio = static_cast<double>(flat.nanoseconds) / static_cast<double>(by_machines.nanoseconds);
        CAPTURE(machines, kind, kib, by_machines.nanoseconds, flat.nanoseconds, ratio);
        CHECK(by_machines <= flat);
        if (machines == std::vector<int>{0, 0, 1, 1} && kind != Kind::reduce && kib == 256) CHECK(ratio > 1.8);
        if (machines == std::vector<int>{0, 0, 1, 1} && kind != Kind::reduce && kib == 4096) CHECK(ratio > 1.4);
      }
    }
  }
}

TEST_CASE("when a rank goes while parts go by machines, no operation hangs, and what ends well is right") {
  for (std::uint64_t seed = 0; seed < share_of(400); ++seed) {
    CAPTURE(seed);
    SimRandom random(seed + 11);
    GroupSetup setup = setup_of({0, 0, 1, 1, 1}, seed);
    setup.world.machine_limits = {0, 16, 0, 0, 0, 0};
    setup.world.segment_bytes = 256;
    setup.world.heartbeat_timeout = Duration::seconds(2);
    if (random.below(2) != 0) setup.paths = rough_paths();
    SimGroup group(setup);
    group.meet();
    Operation operation;
    operation.call.kind = pick(random, {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::reduce});
    operation.call.dtype = DType::f32;
    operation.call.rows = 40 + random.below(200);
    operation.call.root = static_cast<std::int32_t>(random.below(5));
    if (has_parts(operation.call.kind)) choose_parts(operation, operation.call.rows, setup.size, random);
    complete(operation, random, group.options(0));
    REQUIRE(operation.call.algorithm == Algorithm::machines);
    for (int rank = 0; rank < setup.size; ++rank)
      operation.outcomes.push_back(&group.start(rank, 0, make_task(operation, rank, group.options(rank))));
    const std::uint64_t until = group.sim().event_count() + random.below(120);
    const RunEnd end = group.sim().run_until([&] { return group.sim().event_count() == until; }, {.time = Duration::seconds(1)});
    REQUIRE((end == RunEnd::done || end == RunEnd::time_limit));
    const int victim = static_cast<int>(random.below(5));
    group.sim().stop(group.node(victim), random.below(3) == 0 ? StopKind::falls_silent : StopKind::resets_links).now();
    const auto are_done = [&] {
      for (int rank = 0; rank < setup.size; ++rank)
        if (rank != victim && !operation.outcomes[static_cast<std::size_t>(rank)]->done()) return false;
      return true;
    };
    REQUIRE(group.sim().run_until(are_done, {.time = Duration::seconds(10)}) == RunEnd::done);
    for (int rank = 0; rank < setup.size; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      const Outcome& outcome = *operation.outcomes[r];
      if (rank == victim) continue;
      CHECK(outcome.completions == 1);
      if (outcome.status.ok()) {
        CHECK(operation.outputs[r] == operation.expected[r]);
      } else {
        CHECK(outcome.status.code() == Errc::peer_lost);
        CHECK(outcome.status.rank() == victim);
      }
    }
  }
}
