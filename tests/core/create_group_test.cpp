#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <numeric>

#include "sim/sim_random.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

/// Some ranks of a world that form a group.
struct Members {
  std::vector<int> ranks;  // of the parent
  int tag = 0;
  std::vector<GroupEngine*> made{};  // by rank in the new group
};

/// Draws some of `size` ranks, in any order.
std::vector<int> some_ranks(SimRandom& random, int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  for (std::size_t i = ranks.size(); i > 1; --i) std::swap(ranks[i - 1], ranks[random.below(i)]);
  ranks.resize(1 + random.below(ranks.size()));
  return ranks;
}

GroupSetup setup_of(int size, std::uint64_t seed = 1) {
  GroupSetup setup;
  setup.size = size;
  setup.seed = seed;
  return setup;
}

}  // namespace

TEST_CASE("members form groups, several at a time, and nobody else takes part") {
  for (const auto seed : seeds(100)) {
    CAPTURE(seed);
    SimRandom random(seed);
    GroupSetup setup = setup_of(static_cast<int>(2 + random.below(5)), seed);
    if (random.below(2) != 0) setup.paths = rough_paths();
    SimGroup sim(setup);
    sim.meet();
    std::deque<Members> all;
    for (int tag = 0; tag < 4; ++tag) {
      Members& members = all.emplace_back(Members{some_ranks(random, setup.size), tag * 341});
      members.made.resize(members.ranks.size());
    }
    std::vector<Outcome*> outcomes;
    for (int rank = 0; rank < setup.size; ++rank)
      for (std::size_t i = 0; i < all.size(); ++i) {
        // Each rank begins with another tag.
        Members& members = all[(i + static_cast<std::size_t>(rank)) % all.size()];
        const auto place = std::find(members.ranks.begin(), members.ranks.end(), rank) - members.ranks.begin();
        if (place == static_cast<std::ptrdiff_t>(members.ranks.size())) continue;
        outcomes.push_back(
            &sim.start_create(sim.world(rank).group(), rank, members.ranks, members.tag, members.made[static_cast<std::size_t>(place)]));
      }
    REQUIRE(sim.run_until_done());
    for (const Outcome* outcome : outcomes) CHECK(outcome->status.ok());
    std::deque<std::vector<std::int32_t>> sums;
    std::vector<std::int32_t> expected;
    for (const Members& members : all)
      for (GroupEngine* group : members.made) {
        REQUIRE(group != nullptr);
        CHECK(world_ranks(*group) == members.ranks);
        const int rank = members.ranks[static_cast<std::size_t>(group->options().rank)];
        auto& own = sums.emplace_back(50, 1 << (4 * rank));
        sim.start_in(*group, rank, 0, make_all_reduce(ReduceOp::sum, own, own, 1, group->options()));
        std::int32_t sum = 0;
        for (const int member : members.ranks) sum += 1 << (4 * member);
        expected.push_back(sum);
      }
    REQUIRE(sim.run_until_done());
    for (std::size_t i = 0; i < sums.size(); ++i) CHECK(sums[i] == std::vector<std::int32_t>(50, expected[i]));
    sim.close_cleanly();
  }
}

TEST_CASE("members that name other ranks, or another order, get a mismatch, and can try again") {
  SimGroup sim(setup_of(3));
  sim.meet();
  std::vector<GroupEngine*> made(3);
  std::vector<Outcome*> outcomes;
  const std::vector<std::vector<int>> told{{0, 1, 2}, {0, 1, 2}, {0, 2, 1}};
  for (int rank = 0; rank < 3; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    outcomes.push_back(&sim.start_create(sim.world(rank).group(), rank, told[r], 7, made[r]));
  }
  REQUIRE(sim.run_until_done());
  for (int rank = 0; rank < 3; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    CHECK(made[r] == nullptr);
    CHECK(outcomes[r]->status.code() == Errc::mismatch);
    CHECK_THAT(outcomes[r]->status.text(), Contains("names other ranks for the group with tag 7"));
    outcomes[r] = &sim.start_create(sim.world(rank).group(), rank, told[0], 7, made[r]);
  }
  REQUIRE(sim.run_until_done());
  for (const Outcome* outcome : outcomes) CHECK(outcome->status.ok());
  sim.close_cleanly();
}

TEST_CASE("a creation that a member does not call ends with its deadline, and one whose member leaves with its loss") {
  SimGroup sim(setup_of(3));
  sim.meet();
  GroupEngine* made = nullptr;
  SECTION("late") {
    Outcome& outcome = sim.start_create(sim.world(1).group(), 1, {1, 2}, 3, made, Duration::seconds(1));
    REQUIRE(sim.run_until_done(Duration::seconds(3)));
    CHECK(outcome.status.code() == Errc::timed_out);
    CHECK(outcome.status.rank() == 2);
  }
  SECTION("gone") {
    Outcome& outcome = sim.start_create(sim.world(1).group(), 1, {1, 2}, 3, made);
    sim.close(2);
    REQUIRE(sim.run_until_done(Duration::seconds(10)));
    CHECK(outcome.status.code() == Errc::peer_lost);
    CHECK(outcome.status.rank() == 2);
  }
  CHECK(made == nullptr);
}

TEST_CASE("members of whom one is lost at any moment name it, and no other") {
  for (const auto seed : seeds(300)) {
    CAPTURE(seed);
    SimRandom random(seed);
    SimGroup sim(setup_of(4, seed));
    sim.meet();
    std::vector<GroupEngine*> made(4);
    std::vector<Outcome*> outcomes;
    for (int rank = 0; rank < 4; ++rank)
      outcomes.push_back(&sim.start_create(sim.world(rank).group(), rank, {0, 1, 2, 3}, 0, made[static_cast<std::size_t>(rank)]));
    sim.sim().run_for(Duration::microseconds(static_cast<std::int64_t>(random.below(2000))));
    sim.sim().stop(sim.node(3)).now();
    sim.sim().run_for(Duration::seconds(40));
    for (int rank = 0; rank < 3; ++rank) {
      const Outcome& outcome = *outcomes[static_cast<std::size_t>(rank)];
      CAPTURE(rank, outcome.status.text());
      CHECK(outcome.completions == 1);
      CHECK((outcome.status.ok() || (outcome.status.code() == Errc::peer_lost && outcome.status.rank() == 3)));
    }
  }
}

TEST_CASE("a member in as many groups as it may be is told to all, and the number is free again once the group is left") {
  GroupSetup setup = setup_of(3);
  setup.world.max_groups = 2;
  SimGroup sim(setup);
  sim.meet();
  std::vector<GroupEngine*> first(2), second(2);
  const auto create = [&](const std::vector<int>& ranks, std::vector<GroupEngine*>& made) {
    std::vector<Outcome*> outcomes;
    for (std::size_t member = 0; member < ranks.size(); ++member)
      outcomes.push_back(&sim.start_create(sim.world(ranks[member]).group(), ranks[member], ranks, 0, made[member]));
    REQUIRE(sim.run_until_done());
    return outcomes;
  };
  for (const Outcome* outcome : create({0, 1}, first)) CHECK(outcome->status.ok());
  for (const Outcome* outcome : create({1, 2}, second)) {
    CHECK(outcome->status.code() == Errc::invalid_argument);
    CHECK_THAT(outcome->status.text(), Contains("rank 1 is in 2 groups"));
  }
  for (int rank = 0; rank < 2; ++rank) sim.world(rank).leave(*first[static_cast<std::size_t>(rank)]);
  sim.sim().run_for(Duration::seconds(1));
  for (const Outcome* outcome : create({1, 2}, second)) CHECK(outcome->status.ok());
  sim.close_cleanly();
}

TEST_CASE("a group of one member, and wrong arguments") {
  SimGroup sim(setup_of(2));
  sim.meet();
  GroupEngine* alone = nullptr;
  Outcome& outcome = sim.start_create(sim.world(1).group(), 1, {1}, 0, alone);
  REQUIRE(sim.run_until_done());
  CHECK(outcome.status.ok());
  REQUIRE(alone != nullptr);
  CHECK(alone->options().size == 1);
  const WorldOptions& own = sim.options(1);
  CHECK_THAT(check_creation({0}, 0, own).text(), Contains("rank 1, which calls, is not among the ranks"));
  CHECK_THAT(check_creation({1, 2}, 0, own).text(), Contains("no rank 2 in a group of 2"));
  CHECK_THAT(check_creation({1, 0, 1}, 0, own).text(), Contains("rank 1 is named twice"));
  CHECK_THAT(check_creation({1}, GroupEngine::kCreationTags, own).text(), Contains("the tag is 1024; it must be 0 to 1023"));
  CHECK(check_creation({1}, -1, own).code() == Errc::invalid_argument);
  CHECK(check_creation({}, 0, own).code() == Errc::invalid_argument);
  sim.close_cleanly();
}
