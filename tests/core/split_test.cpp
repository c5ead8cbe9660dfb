#include <catch2/catch.hpp>

#include "sim/sim_random.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

using Engines = std::vector<GroupEngine*>;  // one group, by rank in the world; null: not a member

/// Four ranks, split into even and odd ones, on calm paths.
struct Parity {
  explicit Parity(const WorldOptions& options = {}) : sim(setup(options)) {
    sim.meet();
    halves = sim.split(sim.groups(), {0, 1, 0, 1});
  }
  static GroupSetup setup(const WorldOptions& options) {
    GroupSetup setup;
    setup.size = 4;
    setup.world = options;
    return setup;
  }
  GroupEngine& half(int rank) { return *halves[static_cast<std::size_t>(rank)]; }
  Outcome& start_barrier(int rank) { return sim.start_in(half(rank), rank, 0, make_barrier(half(rank).options())); }
  Outcome& start_sum(int rank, std::vector<float>& values) {
    return sim.start_in(half(rank), rank, 0, make_all_reduce(ReduceOp::sum, values, values, 1, half(rank).options()));
  }

  SimGroup sim;
  Engines halves;
};

}  // namespace

TEST_CASE("a split orders by key, then by old rank, and a negative key is the old rank") {
  GroupSetup setup;
  setup.size = 6;
  SimGroup sim(setup);
  sim.meet();
  const auto by_key = sim.split(sim.groups(), {0, 1, 0, 1, 0, -7}, {9, 5, 2, 5, -1, 0});
  CHECK(world_ranks(*by_key[0]) == std::vector<int>{2, 4, 0});
  CHECK(world_ranks(*by_key[1]) == std::vector<int>{1, 3});
  CHECK(by_key[5] == nullptr);
  CHECK(by_key[0]->options().rank == 2);
  CHECK(by_key[0]->options().size == 3);
  // In a split of a part, the old rank is the one in that part.
  const auto again = sim.split(by_key, {0, 3, 0, 4, 0, 0}, {-1, 0, -1, 0, -1, 0});
  CHECK(world_ranks(*again[0]) == std::vector<int>{2, 4, 0});
  CHECK(world_ranks(*again[1]) == std::vector<int>{1});
  CHECK(world_ranks(*again[3]) == std::vector<int>{3});
  const auto reversed = sim.split(sim.groups(), std::vector<int>(6, 1 << 30), {5, 4, 3, 2, 1, 0});
  CHECK(world_ranks(*reversed[0]) == std::vector<int>{5, 4, 3, 2, 1, 0});
  const auto nobody = sim.split(sim.groups(), std::vector<int>(6, -1));
  CHECK(std::count(nobody.begin(), nobody.end(), nullptr) == 6);
  sim.close_cleanly();
}

TEST_CASE("splits of several groups may run at the same time") {
  for (const auto seed : seeds(50)) {
    CAPTURE(seed);
    GroupSetup setup;
    setup.size = 4;
    setup.seed = seed;
    SimGroup sim(setup);
    sim.meet();
    const auto rows = sim.split(sim.groups(), {0, 0, 1, 1});
    const auto columns = sim.split(sim.groups(), {0, 1, 0, 1});
    std::vector<Engines> made(3, Engines(4));
    std::vector<Outcome*> outcomes;
    for (int rank = 0; rank < 4; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      // Each rank starts the three splits in another order.
      const Engines parents{rows[r], columns[r], &sim.world(rank).group()};
      for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t which = (i + r) % 3;
        outcomes.push_back(&sim.start_split(*parents[which], rank, static_cast<std::uint16_t>(which), 0, 3 - rank, made[which][r]));
      }
    }
    REQUIRE(sim.run_until_done());
    for (const Outcome* outcome : outcomes) CHECK(outcome->status.ok());
    CHECK(world_ranks(*made[0][0]) == std::vector<int>{1, 0});
    CHECK(world_ranks(*made[1][3]) == std::vector<int>{3, 1});
    CHECK(world_ranks(*made[2][2]) == std::vector<int>{3, 2, 1, 0});
    std::deque<std::vector<std::int32_t>> values;
    for (std::size_t which = 0; which < 3; ++which) {
      for (int rank = 0; rank < 4; ++rank) {
        GroupEngine& group = *made[which][static_cast<std::size_t>(rank)];
        auto& own = values.emplace_back(100, 1 << (4 * rank));
        sim.start_in(group, rank, 0, make_all_reduce(ReduceOp::sum, own, own, 1, group.options()));
      }
    }
    REQUIRE(sim.run_until_done());
    const std::vector<std::int32_t> sums{0x11, 0x11, 0x1100, 0x1100, 0x101, 0x1010, 0x101, 0x1010, 0x1111, 0x1111, 0x1111, 0x1111};
    for (std::size_t i = 0; i < sums.size(); ++i) CHECK(values[i] == std::vector<std::int32_t>(100, sums[i]));
    sim.close_cleanly();
  }
}

TEST_CASE("a split that others do not call ends with its deadline") {
  GroupSetup setup;
  setup.size = 3;
  SimGroup sim(setup);
  sim.meet();
  GroupEngine* made = nullptr;
  Outcome& outcome = sim.start_split(sim.world(1).group(), 1, 4, 0, -1, made, Duration::seconds(1));
  REQUIRE(sim.run_until_done(Duration::seconds(3)));
  CHECK(outcome.status.code() == Errc::timed_out);
  CHECK(made == nullptr);
  CHECK_THAT(outcome.status.text(), Contains("stream 4") && Contains("1000 ms"));
}

TEST_CASE("a mismatch in a group ends the world and says which group and ranks it was") {
  for (const auto seed : seeds(20)) {
    CAPTURE(seed);
    Parity parity;
    std::vector<float> three(3);
    std::vector<float> four(4);
    Outcome& one = parity.start_sum(1, three);
    Outcome& other = parity.start_sum(3, four);
    Outcome& elsewhere = parity.start_barrier(0);
    REQUIRE(parity.sim.run_until_done(Duration::seconds(5)));
    parity.sim.sim().run_for(Duration::seconds(1));
    for (const Outcome* outcome : {&one, &other}) {
      CHECK(outcome->status.code() == Errc::mismatch);
      CHECK_THAT(outcome->status.text(), Contains("operation 0 of stream 0 of the group of ranks 1, 3:") &&
                                             Contains("rank 0 (rank 1 of the world) called all_reduce(sum, f32 x 3") &&
                                             Contains("rank 1 (rank 3 of the world) called all_reduce(sum, f32 x 4"));
    }
    CHECK(elsewhere.status.code() == Errc::mismatch);
    for (int rank = 0; rank < 4; ++rank) {
      const Status& failure = parity.sim.world(rank).failure();
      CHECK(failure.code() == Errc::mismatch);
      CHECK((failure.rank() == 1 || failure.rank() == 3));
    }
  }
}

TEST_CASE("a deadline in a group names the rank in the group and in the world") {
  Parity parity;
  std::vector<float> values(3);
  auto task = make_all_reduce(ReduceOp::sum, values, values, 1, parity.half(1).options());
  task.value().timeout = Duration::seconds(1);
  Outcome& outcome = parity.sim.start_in(parity.half(1), 1, 0, std::move(task));
  REQUIRE(parity.sim.run_until_done(Duration::seconds(3)));
  CHECK(outcome.status.code() == Errc::timed_out);
  CHECK(outcome.status.rank() == 3);
  CHECK_THAT(outcome.status.text(),
             Contains("of the group of ranks 1, 3, ") && Contains("rank 1 (rank 3 of the world) (has not called it)"));
}

TEST_CASE("a refused message in a group names both ranks twice, and the world lives on") {
  Parity parity;
  std::vector<float> values(10);
  std::vector<std::int32_t> other(10);
  Outcome& sent = parity.sim.send_in(parity.half(1), 1, 0, make_send(values, 1, parity.half(1).options()));
  Outcome& received = parity.sim.receive_in(parity.half(3), 3, 0, make_receive(other, 0, parity.half(3).options()));
  REQUIRE(parity.sim.run_until_done());
  for (const Outcome* outcome : {&sent, &received}) {
    CHECK(outcome->status.code() == Errc::mismatch);
    CHECK_THAT(outcome->status.text(), Contains("of the group of ranks 1, 3") && Contains("rank 0 (rank 1 of the world) sent f32") &&
                                           Contains("rank 1 (rank 3 of the world) receives i32"));
  }
  CHECK(sent.status.rank() == 3);
  CHECK(received.status.rank() == 1);
  parity.sim.close_cleanly();
}

TEST_CASE("when a rank goes, the operations of every group end with its name") {
  for (const auto seed : seeds(60)) {
    CAPTURE(seed);
    SimRandom random(seed);
    GroupSetup setup;
    setup.size = 6;
    setup.seed = seed;
    setup.world.heartbeat_timeout = Duration::seconds(2);
    SimGroup sim(setup);
    sim.meet();
    const auto thirds = sim.split(sim.groups(), {0, 1, 2, 0, 1, 2});
    const auto halves = sim.split(sim.groups(), {0, 0, 0, 1, 1, 1});
    const int victim = static_cast<int>(random.below(6));
    std::deque<std::vector<float>> values;
    std::vector<std::pair<int, Outcome*>> outcomes;
    for (int round = 0; round < 3; ++round) {
      for (int rank = 0; rank < 6; ++rank) {
        if (rank == victim) continue;  // no operation with the victim can end
        for (const auto& groups : {sim.groups(), thirds, halves}) {
          GroupEngine& group = *groups[static_cast<std::size_t>(rank)];
          auto& own = values.emplace_back(20'000);
          outcomes.emplace_back(rank, &sim.start_in(group, rank, 0, make_all_reduce(ReduceOp::sum, own, own, 1, group.options())));
        }
      }
    }
    sim.sim().stop(sim.node(victim), random.below(2) != 0 ? StopKind::closes_links : StopKind::falls_silent).in(Duration::milliseconds(3));
    REQUIRE(sim.run_until_done(Duration::seconds(30)));
    for (const auto& [rank, outcome] : outcomes) {
      CAPTURE(rank);
      INFO(outcome->status.text());
      CHECK(outcome->completions == 1);
      const bool without_victim = outcome->status.ok();
      CHECK((without_victim || (outcome->status.code() == Errc::peer_lost && outcome->status.rank() == victim)));
    }
    for (int rank = 0; rank < 6; ++rank)
      if (rank != victim) CHECK(sim.world(rank).failure().rank() == victim);
  }
}
