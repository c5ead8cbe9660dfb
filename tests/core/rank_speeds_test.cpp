#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <optional>

#include "core/rendezvous/link_probes.hpp"
#include "sim/sim_random.hpp"
#include "tests/core/adder.hpp"
#include "tests/core/probes_setup.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

// In bytes per second. Of slow links less is sent before they count as measured, and each byte costs the simulation time.
constexpr std::uint64_t kPort = 5'000'000;

GroupSetup speeds_setup(int size, PartsPolicy parts) {
  GroupSetup setup = probes_setup(size, 0);
  setup.world.placement.parts = parts;
  return setup;
}

/// The port of the native rank `slow` is so many times slower than those of the others.
void limit_ports(SimGroup& group, int slow, std::uint64_t times) {
  for (int rank = 0; rank < group.options(0).natives(); ++rank)
    group.sim().limit_port(group.node(rank), rank == slow ? kPort / times : kPort);
}

/// Returns the virtual time of an all-reduce of `count` f32.
Duration time_of_sum(SimGroup& group, std::size_t count) {
  const Instant start = group.sim().now();
  std::deque<Adder> adders;
  for (int rank = 0; rank < group.size(); ++rank) adders.emplace_back(group, rank, count, 1);
  REQUIRE(group.sim().run_until([&] { return std::all_of(adders.begin(), adders.end(), [](const Adder& a) { return a.done(); }); },
                                {.time = Duration::seconds(600)}) == RunEnd::done);
  for (const Adder& adder : adders) CHECK(adder.last().ok());
  return group.sim().now() - start;
}

Duration time_of_sum(int size, int slow, std::uint64_t times, PartsPolicy parts, std::size_t count) {
  GroupSetup setup = speeds_setup(size, parts);
  setup.world.segment_bytes = 64 << 10;
  SimGroup group(setup);
  limit_ports(group, slow, times);
  group.meet();
  const Duration took = time_of_sum(group, count);
  group.close_cleanly();
  return took;
}

}  // namespace

TEST_CASE("speeds are relative to the middle rank, and coarse") {
  using Speeds = std::vector<std::uint32_t>;
  const auto speeds = [](const std::vector<std::uint64_t>& next, const std::vector<std::uint64_t>& second = {}) {
    return speeds_of({next, second});
  };
  CHECK(speeds({}).empty());
  CHECK(speeds({8000, 8000, 8000}).empty());
  CHECK(speeds({8000, 11'900, 8000, 9000}).empty());
  CHECK(speeds({0, 0, 0}).empty());
  // Rank 2 is slow, and so are the links of ranks 1 and 2 to the next one.
  CHECK(speeds({8000, 32'000, 32'000, 8000}) == Speeds{1024, 1024, 256, 1024});
  CHECK(speeds({8000, 27'000, 38'000, 8000}) == Speeds{1024, 1024, 256, 1024});
  CHECK(speeds({8000, 12'001, 12'001, 8000}) == Speeds{1024, 1024, 724, 1024});
  CHECK(speeds({8000, 80'000'000'000, 80'000'000'000, 8000}) == Speeds{1024, 1024, 1, 1024});
  // What was not measured is no reason to be slow.
  CHECK(speeds({0, 32'000, 8000, 8000}) == Speeds{1024, 256, 1024, 1024});
  // One good link shows that a rank is fast, whatever held up the others.
  CHECK(speeds({8000, 32'000, 32'000, 32'000}, {32'000, 8000, 32'000, 32'000}) == Speeds{1024, 1024, 256, 1024});
  // Where fast and slow ranks alternate, only the links to the next rank but one show it.
  CHECK(speeds({32'000, 32'000, 32'000, 32'000}, {8000, 32'000, 8000, 32'000}) == Speeds{1024, 256, 1024, 256});
  // A rank that looks faster than most makes nobody slow.
  CHECK(speeds({4000, 8000, 8000, 8000, 8000}).empty());
  // Links of more than 4 Gbit/s count alike.
  CHECK(speeds({100, 1900, 1900, 100}).empty());
  CHECK(speeds({100, 4000, 4000, 100}) == Speeds{1024, 1024, 512, 1024});
}

TEST_CASE("a slow native is found when the ranks meet, whichever it is, and groups know it, too") {
  for (const int size : {3, 4, 9, 10, 17}) {
    for (const int slow : {0, 1, size - 1, 8 % size}) {
      for (const int guests : {0, 2}) {
        if (guests > 0 && size > 4) continue;
        CAPTURE(size, slow, guests);
        GroupSetup setup = probes_setup(size, guests);
        setup.world.placement.parts = PartsPolicy::measured;
        SimGroup group(setup);
        limit_ports(group, slow, 4);
        group.meet();
        std::vector<std::uint32_t> expected(static_cast<std::size_t>(size + guests), kFullSpeed);
        expected[static_cast<std::size_t>(slow)] = 256;
        for (int rank = 0; rank < group.size(); ++rank) {
          CHECK(group.options(rank).speeds == expected);
          CHECK(group.world(rank).group().options().topology.index_among_owners(slow) == -1);
          CHECK(group.options(rank).placement.parts == PartsPolicy::measured);
        }
        std::vector<int> colors(static_cast<std::size_t>(group.size()), 0);
        colors[static_cast<std::size_t>(slow)] = 1;
        const auto parts = group.split(group.groups(), colors);
        for (int rank = 0; rank < group.size(); ++rank) CHECK_FALSE(parts[static_cast<std::size_t>(rank)]->options().topology.has_speeds());
        group.close_cleanly();
      }
    }
  }
}

TEST_CASE("fast and slow natives that alternate are told apart") {
  for (const int size : {4, 6}) {
    SimGroup group(speeds_setup(size, PartsPolicy::measured));
    for (int rank = 0; rank < size; ++rank) group.sim().limit_port(group.node(rank), rank % 2 == 0 ? kPort : kPort / 4);
    group.meet();
    for (int rank = 0; rank < size; ++rank)
      for (int other = 0; other < size; ++other) CHECK(group.options(rank).topology.speed(other) == (other % 2 == 0 ? kFullSpeed : 256));
    group.close_cleanly();
  }
}

TEST_CASE("ranks that are equally fast, or are not to measure, have no speeds") {
  for (const auto parts : {PartsPolicy::even, PartsPolicy::measured, PartsPolicy::passive}) {
    SimGroup group(speeds_setup(5, parts));
    limit_ports(group, parts == PartsPolicy::measured ? -1 : 3, 4);
    group.meet();
    for (int rank = 0; rank < 5; ++rank) {
      CHECK(group.options(rank).speeds.empty());
      CHECK_FALSE(group.world(rank).group().options().topology.has_speeds());
    }
    group.close_cleanly();
  }
}

TEST_CASE("parts by speed are as much faster as one slow rank lets them be") {
  constexpr std::size_t kCount = 1 << 20;  // i32
  for (const auto& [size, gain] : {std::pair(4, 1.4), std::pair(8, 1.6)}) {
    const auto even = static_cast<double>(time_of_sum(size, 1, 4, PartsPolicy::even, kCount).nanoseconds);
    const auto measured = static_cast<double>(time_of_sum(size, 1, 4, PartsPolicy::measured, kCount).nanoseconds);
    CAPTURE(size, even / 1e6, measured / 1e6);
    CHECK(even / measured >= gain);
    // The slow rank has to send every byte once.
    CHECK(measured / 1e9 >= kCount * 4.0 / (kPort / 4));
  }
}

TEST_CASE("a rank of a tenth of the others' speed delays 1 MiB by little more than its own bytes need") {
  constexpr std::size_t kCount = 256 << 10;
  const auto measured = static_cast<double>(time_of_sum(4, 2, 10, PartsPolicy::measured, kCount).nanoseconds);
  CHECK(measured / 1e9 <= 1.2 * kCount * 4.0 / (kPort / 10));
}

TEST_CASE("over rough networks all ranks have the same speeds, whatever was measured, and sums come out") {
  for (const auto seed : seeds(60)) {
    SimRandom random(seed + 5);
    const int natives = static_cast<int>(3 + random.below(6)), guests = static_cast<int>(random.below(3));
    GroupSetup setup = probes_setup(natives, guests);
    setup.seed = seed;
    setup.paths = rough_paths();
    setup.world.placement.parts = PartsPolicy::measured;
    setup.world.limits = {random.below(3000), random.below(9000)};
    setup.world.leaf_limits = {1000, 0, 3000, 16};
    setup.world.placement.order = static_cast<ReduceOrder>(random.below(kReduceOrderCount));
    CAPTURE(seed, natives, guests);
    SimGroup group(setup);
    for (int rank = 0; rank < natives; ++rank)
      if (random.below(3) == 0) group.sim().limit_port(group.node(rank), 1'000'000 + random.below(9'000'000));
    group.meet();
    for (int rank = 1; rank < group.size(); ++rank) {
      CHECK(group.options(rank).speeds == group.options(0).speeds);
      CHECK(choices(group.options(rank)) == choices(group.options(0)));
    }
    for (const std::size_t count : {1u, 700u, 4000u}) time_of_sum(group, count);
    group.close_cleanly();
  }
}

TEST_CASE("speeds that no rank can have end the meeting") {
  SimGroup group(probes_setup(3, 0));
  World& world = group.world(0);
  wire::Begin begin = placement_of({}, world.options());
  for (const std::vector<std::uint32_t>& speeds : {std::vector<std::uint32_t>{1024, 1024}, {1024, 0, 1024}, {1024, 1025, 1}}) {
    begin.speeds = speeds;
    CHECK(take_placement(begin, world).code() == Errc::protocol_error);
  }
  begin.speeds = {1024, 1, 1024};
  begin.parts = kPartsPolicyCount;
  CHECK(take_placement(begin, world).code() == Errc::protocol_error);
  begin.parts = 1;
  CHECK(take_placement(begin, world).ok());
  CHECK(world.group().options().topology.index_among_owners(1) == -1);
}

TEST_CASE("a link inside of a machine is not measured, and the turn is passed on over it") {
  SimWorld sim(1);
  SimNode& node = sim.add_node();
  WorldOptions options;
  options.rank = 0;
  options.size = 3;
  options.placement.parts = PartsPolicy::measured;
  std::vector<wire::LinkProbe> sent;
  std::optional<LinkProbes::Measured> measured;
  LinkProbes probes(
      node.loop(), options, [&](int, const wire::LinkProbe& probe) { sent.push_back(probe); }, [](int) { return true; },
      [&](const LinkProbes::Measured& result) { measured = result; });
  probes.start();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].padding.empty());
  CHECK(probes.on_answer(1, sent[0]));
  REQUIRE(measured);
  CHECK(measured->next_byte_ps == 0);
  // Rank 1 waits for exactly such a probe.
  options.rank = 1;
  sent.clear();
  LinkProbes next(
      node.loop(), options, [&](int, const wire::LinkProbe& probe) { sent.push_back(probe); }, [](int) { return true; },
      [](const LinkProbes::Measured&) {});
  next.start();
  next.on_probe(0, wire::LinkProbe{0, false, {}});
  next.on_probe(2, wire::LinkProbe{6, false, {}});
  CHECK(sent.empty());
  next.on_probe(0, wire::LinkProbe{6, false, {}});
  next.on_probe(0, wire::LinkProbe{6, false, {}});
  CHECK(sent.size() == 1);
}

TEST_CASE("a native that is lost while ranks take turns to measure is named, and nobody hangs") {
  for (const auto seed : seeds(100)) {
    SimRandom random(seed);
    const int size = static_cast<int>(3 + random.below(4));
    GroupSetup setup = speeds_setup(size, PartsPolicy::measured);
    setup.seed = seed;
    setup.world.heartbeat_timeout = Duration::seconds(2);
    const auto complete = [&](SimGroup& group) {
      for (int rank = 0; rank < size; ++rank)
        for (int other = 0; other < size; ++other)
          if (rank != other && !group.world(rank).has_session(other)) return false;
      return true;
    };
    SimGroup group(setup);
    limit_ports(group, 1, 4);
    start_all(group, size);
    REQUIRE(group.sim().run_until([&] { return complete(group); }, {.time = Duration::seconds(50)}) == RunEnd::done);
    const int victim = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
    const auto fault = static_cast<Fault>(random.below(static_cast<std::uint64_t>(Fault::kCount)));
    CAPTURE(seed, size, victim, static_cast<int>(fault));
    inject(group, fault, victim, Duration::microseconds(static_cast<std::int64_t>(random.below(600'000))));
    const auto survivors_know = [&] {
      for (int rank = 0; rank < size; ++rank)
        if (rank != victim && group.world(rank).failure().ok()) return false;
      return true;
    };
    REQUIRE(group.sim().run_until(survivors_know, {.time = Duration::seconds(100)}) == RunEnd::done);
    for (int rank = 0; rank < size; ++rank)
      if (rank != victim) CHECK(group.world(rank).failure().rank() == victim);
  }
}
