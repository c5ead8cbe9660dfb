#include <catch2/catch.hpp>

#include "core/engine/membership.hpp"
#include "sim/sim_random.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

GroupSetup leave_setup(int size, std::uint64_t seed = 0) {
  GroupSetup setup;
  setup.size = size;
  setup.seed = seed;
  return setup;
}

Outcome& start_barrier(SimGroup& sim, GroupEngine& group, int rank) { return sim.start_in(group, rank, 0, make_barrier(group.options())); }

}  // namespace

TEST_CASE("a member that leaves a group is not missed until it is needed") {
  SimGroup sim(leave_setup(3));
  sim.meet();
  const auto all = sim.split(sim.groups(), {0, 0, 0}, {2, 1, 0});
  for (int rank = 0; rank < 3; ++rank) start_barrier(sim, *all[static_cast<std::size_t>(rank)], rank);
  REQUIRE(sim.run_until_done());
  sim.world(1).leave(*all[1]);
  sim.sim().run_for(Duration::seconds(1));
  // The world still works, and so do messages between other members of the group.
  for (int rank = 0; rank < 3; ++rank) start_barrier(sim, sim.world(rank).group(), rank);
  std::vector<float> values(30'000, 2.0F);
  std::vector<float> received(30'000);
  sim.send_in(*all[0], 0, 0, make_send(values, 0, all[0]->options()));
  sim.receive_in(*all[2], 2, 0, make_receive(received, 2, all[2]->options()));
  REQUIRE(sim.run_until_done());
  CHECK(received == values);
  for (int rank = 0; rank < 3; ++rank) CHECK(sim.world(rank).failure().ok());

  Outcome& late = start_barrier(sim, *all[2], 2);
  REQUIRE(sim.run_until_done(Duration::seconds(1)));
  CHECK(late.status.code() == Errc::peer_lost);
  CHECK(late.status.rank() == 1);
  CHECK_THAT(late.status.text(), Contains("rank 1 left the group before operation 1 of stream 0 of the group of ranks 2, 1, 0, barrier"));
  sim.sim().run_for(Duration::seconds(1));
  CHECK(sim.world(0).failure().rank() == late.status.rank());
  CHECK_THAT(sim.world(0).failure().text(), Catch::Contains(late.status.text()));
}

TEST_CASE("an operation that waits for a member ends when that one leaves the group") {
  const int kind = GENERATE(0, 1, 2);
  CAPTURE(kind);
  SimGroup sim(leave_setup(3));
  sim.meet();
  const auto pair = sim.split(sim.groups(), {-1, 0, 0}, {0, 2, 1});
  std::vector<float> values(100'000);
  const WorldOptions& options = pair[1]->options();
  Outcome& waiting = kind == 0   ? start_barrier(sim, *pair[1], 1)
                     : kind == 1 ? sim.send_in(*pair[1], 1, 0, make_send(values, 0, options))
                                 : sim.receive_in(*pair[1], 1, 0, make_receive(values, 0, options));
  sim.sim().run_for(Duration::milliseconds(100));
  CHECK_FALSE(waiting.done());
  sim.world(2).leave(*pair[2]);
  REQUIRE(sim.run_until_done(Duration::seconds(1)));
  CHECK(waiting.status.code() == Errc::peer_lost);
  CHECK(waiting.status.rank() == 2);
  CHECK_THAT(waiting.status.text(), Contains("rank 0 (rank 2 of the world) left the group") && Contains("of the group of ranks 2, 1"));
}

TEST_CASE("a message to a member that has left its group is an error at once") {
  SimGroup sim(leave_setup(2));
  sim.meet();
  const auto pair = sim.split(sim.groups(), {0, 0});
  sim.world(1).leave(*pair[1]);
  sim.sim().run_for(Duration::milliseconds(100));
  std::vector<float> values(3);
  const bool sends = GENERATE(false, true);
  const WorldOptions& options = pair[0]->options();
  Outcome& outcome =
      sends ? sim.send_in(*pair[0], 0, 0, make_send(values, 1, options)) : sim.receive_in(*pair[0], 0, 0, make_receive(values, 1, options));
  REQUIRE(sim.run_until_done(Duration::seconds(1)));
  CHECK(outcome.status.code() == Errc::peer_lost);
  CHECK_THAT(outcome.status.text(), Contains("rank 1 left the group"));
}

TEST_CASE("whoever is done may leave while the others still work, and what comes late is dropped") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    SimRandom random(seed + 11);
    GroupSetup setup = leave_setup(static_cast<int>(2 + random.below(4)), seed);
    if (random.below(2) != 0) setup.paths = rough_paths();
    setup.world.limits = {random.below(2) * 2000, random.below(2) * 8000};
    setup.world.segment_bytes = 1024;
    SimGroup sim(setup);
    sim.meet();
    const auto all = sim.split(sim.groups(), std::vector<int>(static_cast<std::size_t>(setup.size), 0));
    // A root of broadcasts ends before the others have begun, so the others' calls reach a group that it has left.
    const int root = static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size)));
    std::vector<std::vector<float>> values;
    for (int rank = 0; rank < setup.size; ++rank) values.emplace_back(random.below(2) * 5000 + 10, static_cast<float>(rank));
    for (auto& own : values) own.resize(values[static_cast<std::size_t>(root)].size());
    const auto expected = values[static_cast<std::size_t>(root)];
    std::vector<std::vector<Outcome*>> outcomes(values.size());
    for (int rank = 0; rank < setup.size; ++rank) {
      const Duration delay = Duration::microseconds(static_cast<std::int64_t>(random.below(3000)));
      sim.node(rank).loop().after(rank == root ? Duration{} : delay, [&, rank] {
        const auto r = static_cast<std::size_t>(rank);
        for (int i = 0; i < 3; ++i)
          outcomes[r].push_back(&sim.start_in(*all[r], rank, 0, make_broadcast(values[r], root, all[r]->options())));
      });
    }
    std::vector<bool> left(values.size());
    REQUIRE(sim.sim().run_until(
                [&] {
                  for (std::size_t r = 0; r < values.size(); ++r) {
                    const auto done = [](const Outcome* outcome) { return outcome->done(); };
                    if (left[r] || outcomes[r].empty() || !std::all_of(outcomes[r].begin(), outcomes[r].end(), done)) continue;
                    left[r] = true;
                    sim.world(static_cast<int>(r)).leave(*all[r]);
                  }
                  return std::find(left.begin(), left.end(), false) == left.end();
                },
                {.time = Duration::seconds(60)}) == RunEnd::done);
    for (std::size_t r = 0; r < values.size(); ++r) {
      for (const Outcome* outcome : outcomes[r]) {
        INFO(outcome->status.text());
        REQUIRE(outcome->status.ok());
      }
      REQUIRE(values[r] == expected);
    }
    sim.sim().run_for(Duration::seconds(1));
    sim.close_cleanly();
  }
}

TEST_CASE("the world's own group may be left before its parts") {
  SimGroup sim(leave_setup(4));
  sim.meet();
  const auto halves = sim.split(sim.groups(), {0, 0, 1, 1});
  for (int rank = 0; rank < 3; ++rank) sim.world(rank).leave(sim.world(rank).group());
  sim.sim().run_for(Duration::seconds(30));
  std::vector<std::vector<float>> values(4, std::vector<float>(40'000, 1.0F));
  for (int rank = 0; rank < 4; ++rank) {
    auto& own = values[static_cast<std::size_t>(rank)];
    GroupEngine& half = *halves[static_cast<std::size_t>(rank)];
    sim.start_in(half, rank, 0, make_all_reduce(ReduceOp::sum, own, own, 1, half.options()));
  }
  REQUIRE(sim.run_until_done());
  for (const auto& own : values) CHECK(own == std::vector<float>(40'000, 2.0F));
  for (int rank = 0; rank < 4; ++rank) CHECK(sim.world(rank).failure().ok());
  Outcome& late = start_barrier(sim, sim.world(3).group(), 3);
  REQUIRE(sim.run_until_done(Duration::seconds(1)));
  CHECK(late.status.code() == Errc::peer_lost);
  CHECK_THAT(late.status.text(), Contains("rank 0 left the group before operation 2 of stream 0, barrier"));
}

TEST_CASE("groups come and go for ever, and their numbers are used again") {
  GroupSetup setup = leave_setup(3);
  setup.world.max_groups = 4;
  SimGroup sim(setup);
  sim.meet();
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const auto all = sim.split(sim.groups(), {0, 0, round % 2});
    for (int rank = 0; rank < 3; ++rank) {
      GroupEngine& group = *all[static_cast<std::size_t>(rank)];
      CHECK(group.id() < 4);
      start_barrier(sim, group, rank);
    }
    REQUIRE(sim.run_until_done());
    for (int rank = 0; rank < 3; ++rank) sim.world(rank).leave(*all[static_cast<std::size_t>(rank)]);
    sim.sim().run_for(Duration::milliseconds(10));
  }
  sim.close_cleanly();
}

TEST_CASE("a rank in too many groups is named on all ranks, and the world lives on") {
  GroupSetup setup = leave_setup(3);
  setup.world.max_groups = 3;
  SimGroup sim(setup);
  sim.meet();
  const auto first = sim.split(sim.groups(), {-1, 0, -1});
  const auto second = sim.split(sim.groups(), {-1, 5, 5});
  std::vector<GroupEngine*> made(3);
  std::vector<Outcome*> outcomes;
  const auto split = [&] {
    outcomes.clear();
    for (int rank = 0; rank < 3; ++rank)
      outcomes.push_back(&sim.start_split(sim.world(rank).group(), rank, 0, rank < 2 ? 0 : -1, -1, made[static_cast<std::size_t>(rank)]));
    REQUIRE(sim.run_until_done());
  };
  split();
  for (const Outcome* outcome : outcomes) {
    CHECK(outcome->status.code() == Errc::invalid_argument);
    CHECK(outcome->status.rank() == 1);
    CHECK_THAT(outcome->status.text(), Contains("split: rank 1 is in 3 groups, the most there may be"));
  }
  CHECK(made == std::vector<GroupEngine*>(3));
  // A group that only this rank has left still counts, since rank 2 could send to it. A group of one is free at once.
  sim.world(1).leave(*second[1]);
  sim.sim().run_for(Duration::milliseconds(100));
  split();
  CHECK(outcomes[0]->status.code() == Errc::invalid_argument);
  sim.world(1).leave(*first[1]);
  split();
  for (const Outcome* outcome : outcomes) CHECK(outcome->status.ok());
  CHECK(made[1]->options().size == 2);
  CHECK(made[2] == nullptr);
  sim.close_cleanly();
}

TEST_CASE("a rank that leaves the world ends the groups that need it, and no others") {
  SimGroup sim(leave_setup(4));
  sim.meet();
  const auto halves = sim.split(sim.groups(), {0, 0, 1, 1});
  sim.close(3);
  sim.sim().run_for(Duration::milliseconds(100));
  for (const int rank : {0, 1}) start_barrier(sim, *halves[static_cast<std::size_t>(rank)], rank);
  REQUIRE(sim.run_until_done());
  for (int rank = 0; rank < 3; ++rank) CHECK(sim.world(rank).failure().ok());
  Outcome& late = start_barrier(sim, *halves[2], 2);
  REQUIRE(sim.run_until_done(Duration::seconds(1)));
  CHECK(late.status.code() == Errc::peer_lost);
  CHECK(late.status.rank() == 3);
  CHECK_THAT(late.status.text(), Contains("rank 1 (rank 3 of the world) left the group"));
}

TEST_CASE("the link with a rank that has left closes soon, and not with the world") {
  SimGroup sim(leave_setup(3));
  sim.meet();
  sim.close(2);
  sim.sim().run_for(Duration::seconds(2));
  for (const int rank : {0, 1}) {
    CHECK(sim.world(rank).failure().ok());
    CHECK(sim.world(rank).has_left_world(2));
    CHECK_FALSE(sim.world(rank).reaches(2));
    CHECK(sim.world(rank).reaches(1 - rank));
  }
}

TEST_CASE("a group of one works without peers, also as a part, also in a world of one") {
  const int size = GENERATE(1, 3);
  SimGroup sim(leave_setup(size));
  sim.meet();
  std::vector<int> colors(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) colors[static_cast<std::size_t>(rank)] = rank;
  const auto alone = sim.split(sim.split(sim.groups(), colors), colors);
  for (int rank = 0; rank < size; ++rank) {
    GroupEngine& group = *alone[static_cast<std::size_t>(rank)];
    const WorldOptions& options = group.options();
    CHECK(options.rank == 0);
    CHECK(options.size == 1);
    std::vector<float> in{1, 2, 3};
    std::vector<std::vector<float>> outs(3, std::vector<float>(3));
    sim.start_in(group, rank, 0, make_all_reduce(ReduceOp::sum, in, outs[0], 1, options));
    sim.start_in(group, rank, 1, make_reduce_scatter(ReduceOp::max, in, outs[1], options));
    sim.start_in(group, rank, 2, make_all_gather(in, outs[2], options));
    sim.start_in(group, rank, 0, make_broadcast(in, 0, options));
    start_barrier(sim, group, rank);
    REQUIRE(sim.run_until_done());
    for (const auto& out : outs) CHECK(out == in);
    sim.world(rank).leave(group);
  }
}

TEST_CASE("a membership names ranks in both countings, and a long list by its beginning") {
  const Membership world = Membership::of_world(3);
  CHECK(world.suffix().empty());
  CHECK(world.name_of(2) == "rank 2");
  const Membership part({{4, 1}, {1, 7}}, 5);
  CHECK(part.suffix() == " of the group of ranks 4, 1");
  CHECK(part.name_of(0) == "rank 0 (rank 4 of the world)");
  CHECK(part.name_of(1) == "rank 1");
  CHECK(part.rank_of(4) == 0);
  CHECK_FALSE(part.rank_of(0).has_value());
  CHECK(part.group_id(1) == 7);
  std::vector<Membership::Member> many;
  for (int rank = 0; rank < 20; ++rank) many.push_back({rank, 1});
  CHECK_THAT(Membership(many, 20).suffix(), Catch::EndsWith("14, 15 and 4 more"));
  CHECK(Membership({{2, 1}}, 3).suffix() == " of the group of rank 2");
}
