#include <catch2/catch.hpp>

#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

/// Ranks that run sums, and of which one comes late or not at all.
struct LateRank {
  explicit LateRank(int size, std::uint64_t seed = 0, int guests = 0) : sim(setup_of(size, seed, guests)) { sim.meet(); }
  static GroupSetup setup_of(int size, std::uint64_t seed, int guests) {
    GroupSetup setup;
    setup.size = size;
    setup.seed = seed;
    setup.world.guests = guests;
    setup.world.placement.policy = PlacementPolicy::hub;
    return setup;
  }
  Outcome& start_sum(GroupEngine& group, int rank, std::size_t count, Duration timeout = Duration::seconds(1)) {
    auto& own = values.emplace_back(count, 1.0F);
    auto task = make_all_reduce(ReduceOp::sum, own, own, 1, group.options());
    task.value().timeout = timeout;
    outcomes.push_back(&sim.start_in(group, rank, 0, std::move(task)));
    return *outcomes.back();
  }
  /// Checks that every operation has ended with an error about this rank.
  void check(int late, const std::string& text) {
    for (const Outcome* outcome : outcomes) {
      INFO(outcome->status.text());
      CHECK(outcome->status.code() == Errc::timed_out);
      CHECK(outcome->status.rank() == late);
      CHECK_THAT(outcome->status.text(), Contains(text));
    }
  }

  SimGroup sim;
  std::deque<std::vector<float>> values;
  std::vector<Outcome*> outcomes;
};

}  // namespace

TEST_CASE("every rank names the one that has not called, however far along the ring it is") {
  const int size = GENERATE(4, 8);
  const std::size_t count = GENERATE(10, 20'000, 200'000);  // exchange, direct, ring
  for (const auto seed : seeds(static_cast<std::uint64_t>(size))) {
    const int late = static_cast<int>(seed) % size;
    CAPTURE(size, count, late);
    LateRank ranks(size, seed);
    for (int rank = 0; rank < size; ++rank)
      if (rank != late) ranks.start_sum(ranks.sim.world(rank).group(), rank, count);
    REQUIRE(ranks.sim.run_until_done(Duration::seconds(3)));
    ranks.check(late, "was not done after 1000 ms: waiting for rank ");
    const std::string name = "rank " + std::to_string(late);
    for (const Outcome* outcome : ranks.outcomes)
      CHECK_THAT(outcome->status.text(), Contains(name + " (has not called it)") || Contains("; " + name + " has not called it"));
  }
}

TEST_CASE("by the hub every rank names the one that has not called, though guests hear of it from natives only") {
  const int guests = GENERATE(2, 3, 5);
  const std::size_t count = GENERATE(10, 20'000, 200'000);
  for (const auto seed : seeds(6)) {
    const int late = static_cast<int>(seed % 6);
    CAPTURE(guests, count, late);
    LateRank ranks(6, seed, guests);
    for (int rank = 0; rank < 6; ++rank)
      if (rank != late) ranks.start_sum(ranks.sim.world(rank).group(), rank, count);
    REQUIRE(ranks.sim.run_until_done(Duration::seconds(3)));
    ranks.check(late, "was not done after 1000 ms: waiting for rank ");
  }
}

TEST_CASE("a rank that alone has a deadline names the late one behind its neighbours") {
  for (int late = 1; late < 8; ++late) {
    CAPTURE(late);
    LateRank ranks(8);
    for (int rank = 0; rank < 8; ++rank)
      if (rank != late) ranks.start_sum(ranks.sim.world(rank).group(), rank, 200'000, Duration::seconds(rank == 0 ? 1 : 600));
    REQUIRE(ranks.sim.run_until_done(Duration::seconds(3)));
    const std::string name = "rank " + std::to_string(late);
    ranks.check(late, late == 1 || late == 7 ? name + " (has not called it)" : "; " + name + " has not called it");
  }
}

TEST_CASE("in a group the late rank is named in both countings") {
  LateRank ranks(8);
  const auto groups = ranks.sim.split(ranks.sim.groups(), {-1, 0, -1, 0, 0, 0, 0, -1}, {0, 5, 0, 4, 3, 2, 1, 0});
  for (const int rank : {1, 3, 5, 6})
    ranks.start_sum(*groups[static_cast<std::size_t>(rank)], rank, 200'000, Duration::seconds(rank == 6 ? 1 : 600));
  REQUIRE(ranks.sim.run_until_done(Duration::seconds(3)));
  ranks.check(4, "; rank 2 (rank 4 of the world) has not called it");
}

TEST_CASE("what ranks do in another group of the same members misleads nobody") {
  LateRank ranks(4);
  const auto first = ranks.sim.split(ranks.sim.groups(), {0, 0, 0, 0}, {0, 1, 2, 3});
  const auto second = ranks.sim.split(ranks.sim.groups(), {0, 0, 0, 0}, {0, 1, 2, 3});
  for (const int rank : {1, 2, 3}) ranks.start_sum(*first[static_cast<std::size_t>(rank)], rank, 200'000, Duration::seconds(600));
  for (const int rank : {0, 1, 3})
    ranks.start_sum(*second[static_cast<std::size_t>(rank)], rank, 200'000, Duration::seconds(rank == 0 ? 1 : 600));
  REQUIRE(ranks.sim.run_until_done(Duration::seconds(3)));
  ranks.check(2, "; rank 2 has not called it");
}

TEST_CASE("a rank that is held up in an earlier operation is not blamed") {
  LateRank ranks(4);
  // Rank 3 does not take part in the chain; its root and the next rank are done with it at once.
  std::vector<std::vector<float>> chain(4, std::vector<float>(200'000));
  for (const int rank : {0, 1, 2})
    ranks.sim.start(rank, 0, make_broadcast(chain[static_cast<std::size_t>(rank)], 0, ranks.sim.options(rank)));
  for (const int rank : {0, 1, 2}) ranks.start_sum(ranks.sim.world(rank).group(), rank, 10, Duration::seconds(rank == 0 ? 1 : 600));
  REQUIRE(ranks.sim.run_until_done(Duration::seconds(3)));
  ranks.check(3, "rank 3");
}

TEST_CASE("an operation that is done while it is asked about ends well") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    LateRank ranks(3, seed);
    const Duration wait = Duration::microseconds(static_cast<std::int64_t>(999'900 + seed * 8));
    for (const int rank : {0, 1}) ranks.start_sum(ranks.sim.world(rank).group(), rank, 10);
    ranks.sim.node(2).loop().after(wait, [&] { ranks.start_sum(ranks.sim.world(2).group(), 2, 10); });
    REQUIRE(ranks.sim.sim().run_until([&] { return ranks.outcomes.size() == 3; }) == RunEnd::done);
    REQUIRE(ranks.sim.run_until_done(Duration::seconds(3)));
    for (const Outcome* outcome : ranks.outcomes) {
      INFO(outcome->status.text());
      CHECK((outcome->status.ok() || outcome->status.rank() == 2));
    }
  }
}

TEST_CASE("a rank that does not answer is named within a second") {
  LateRank ranks(4);
  for (int rank = 0; rank < 4; ++rank)
    if (rank != 2) ranks.start_sum(ranks.sim.world(rank).group(), rank, 200'000, Duration::seconds(rank == 0 ? 2 : 600));
  ranks.sim.sim().run_for(Duration::milliseconds(500));
  // Rank 0 waits for rank 3, which has called the operation, too. Rank 3 could say that it waits for rank 2, but it is frozen.
  ranks.sim.sim().freeze(ranks.sim.node(3)).now();
  Outcome& own = *ranks.outcomes[0];
  REQUIRE(ranks.sim.sim().run_until([&] { return own.done(); }, {.time = Duration::milliseconds(2700)}) == RunEnd::done);
  CHECK(own.status.code() == Errc::timed_out);
  CHECK(own.status.rank() == 3);
  CHECK_THAT(own.status.text(), Contains("; rank 3 does not answer"));
}
