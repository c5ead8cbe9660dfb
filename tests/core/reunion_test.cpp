// Tests of ranks that have lost each other and hear each other again, and of processes that have joined and do not fit.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <set>

#include "core/elastic/reunion.hpp"
#include "sim/sim_random.hpp"
#include "tests/core/epoch_crew.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

TEST_CASE("whoever has lost whom, and in whatever order they learn it, one rank always stays") {
  for (const auto seed : seeds(20'000)) {
    SimRandom random(seed);
    const int size = static_cast<int>(2 + random.below(4));
    const auto is = [&] { return random.below(2) == 0; };
    using Matrix = std::array<std::array<bool, 5>, 5>;
    Matrix has_lost{}, knows_that_it_was_lost{}, knows_that_it_has_left{};
    std::array<bool, 5> has_left{};
    const auto any = [&] { return random.below(static_cast<std::uint64_t>(size)); };
    for (auto& row : has_lost)
      for (bool& one : row) one = is();
    for (int event = 0; event < 200; ++event) {
      const auto rank = any(), other = any();
      if (rank == other || has_left[rank]) continue;
      // It learns that the other one has lost it, or has left, or loses it only now.
      if (is()) knows_that_it_was_lost[rank][other] = has_lost[other][rank];
      if (is()) knows_that_it_has_left[rank][other] = has_left[other];
      if (random.below(20) == 0) has_lost[rank][other] = true;
      std::vector<OtherRank> others;
      for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i)
        if (i != rank)
          others.push_back({static_cast<int>(i), !has_lost[rank][i], knows_that_it_was_lost[rank][i], knows_that_it_has_left[rank][i]});
      has_left[rank] = makes_way(static_cast<int>(rank), others);
    }
    CAPTURE(seed, size);
    REQUIRE(std::count(has_left.begin(), has_left.begin() + size, true) < size);
  }
}

TEST_CASE("where half of the ranks stood still, all others go on as soon as these wake, which learn that") {
  for (const auto seed : seeds(20))
    for (const OnSplit policy : {OnSplit::wait, OnSplit::fork})
      for (const auto pause : {3, 9, 14}) {
        GroupSetup setup;
        setup.size = 4 + static_cast<int>(seed % 3);
        setup.seed = seed;
        CAPTURE(seed, setup.size, pause);
        Crew crew(setup, policy);
        SimRandom random(seed);
        std::set<int> still;
        while (2 * still.size() < static_cast<std::size_t>(setup.size))
          still.insert(static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size))));
        // Of five a majority stands still where the others go on by themselves, and a minority where they wait.
        if (setup.size % 2 != 0 && policy == OnSplit::wait) still.erase(still.begin());
        for (const int rank : still) crew.group.sim().freeze(crew.group.node(rank)).in(Duration::milliseconds(20));
        crew.run_for(Duration::seconds(pause));
        for (const int rank : still)
          crew.group.sim().resume(crew.group.node(rank)).in(Duration::microseconds(static_cast<std::int64_t>(random.below(100'000))));
        crew.run_for(Duration::seconds(6));
        Origins going_on;
        for (const int rank : crew.living())
          if (!crew.survivor(rank).left_out()) going_on.push_back(rank);
        CHECK(2 * going_on.size() >= static_cast<std::size_t>(setup.size - 1));
        crew.check_goes_on(going_on);
      }
}

TEST_CASE("ranks that hear each other again after a cut become one group") {
  for (const auto seed : seeds(40))
    for (const OnSplit policy : {OnSplit::wait, OnSplit::fork}) {
      GroupSetup setup;
      setup.size = 2 + static_cast<int>(seed % 4);
      setup.seed = seed;
      CAPTURE(seed, setup.size);
      Crew crew(setup, policy);
      SimRandom random(seed);
      // In two parts, or each for itself, as where a switch is without power.
      const bool all = random.below(2) == 0;
      const auto parted = [&](int one, int other) { return all || one % 2 != other % 2; };
      // While the parts wait, or one link after the other when each has gone on by itself.
      const bool is_late = policy == OnSplit::fork && random.below(2) == 0;
      const auto away = [&] { return is_late ? Duration::milliseconds(16'000 + std::int64_t(random.below(8000))) : Duration::seconds(6); };
      for (int one = 0; one < setup.size; ++one)
        for (int other = 0; other < one; ++other) {
          if (!parted(one, other)) continue;
          crew.group.sim().cut(crew.group.node(one), crew.group.node(other)).in(Duration::milliseconds(20));
          crew.group.sim().mend(crew.group.node(one), crew.group.node(other)).in(away());
        }
      crew.run_for(Duration::seconds(is_late ? 45 : 12));
      Origins going_on;
      for (const int rank : crew.living())
        if (!crew.survivor(rank).left_out()) going_on.push_back(rank);
      CHECK(!going_on.empty());
      crew.check_goes_on(going_on);
    }
}

TEST_CASE("a part that has gone on by itself joins the others also where it has lost ranks since") {
  for (const auto seed : seeds(5)) {
    CAPTURE(seed);
    GroupSetup setup;
    setup.size = 11;
    setup.seed = seed;
    Crew crew(setup, OnSplit::fork);
    const auto for_each_cut = [&](const auto& act) {
      for (int one = 0; one < setup.size; ++one)
        for (int other = 0; other < one; ++other)
          if ((one < 5) != (other < 5)) act(crew.group.node(one), crew.group.node(other));
    };
    for_each_cut([&](auto& one, auto& other) { crew.group.sim().cut(one, other).in(Duration::milliseconds(20)); });
    crew.run_for(Duration::seconds(30));
    for (const int rank : {4, 3, 2, 1}) {
      crew.end(rank, StopKind::closes_links, {});
      crew.run_for(Duration::seconds(1));
    }
    CHECK(crew.survivor(0).members() == Origins{0});
    CHECK(crew.survivor(0).world().options().epoch == 5);
    for_each_cut([&](auto& one, auto& other) { crew.group.sim().mend(one, other).now(); });
    crew.run_for(Duration::seconds(10));
    CHECK(crew.survivor(0).left_out());
    crew.gone.insert(0);
    crew.check_goes_on(crew.living());
  }
}

TEST_CASE("a process that has just joined and calls something else is lost to the members, until it has agreed on something with them") {
  for (const bool is_trusted : {false, true})
    for (const int joined : {1, 2})
      for (const auto seed : seeds(10)) {
        CAPTURE(is_trusted, joined, seed);
        GroupSetup setup;
        setup.size = 4;
        setup.world.joined = joined;
        setup.seed = seed;
        SimGroup group(Crew::elastic(setup));
        group.meet();
        for (int rank = 0; rank < 4 && is_trusted; ++rank) group.world(rank).trust_joined();
        std::vector<std::vector<std::int32_t>> values(4, std::vector<std::int32_t>(4, 1));
        values[3].resize(5, 1);
        std::vector<Outcome*> outcomes;
        for (int rank = 0; rank < 4; ++rank) {
          auto& all = values[static_cast<std::size_t>(rank)];
          outcomes.push_back(&group.start(rank, 0, make_all_reduce(ReduceOp::sum, all, all, 1, group.options(rank))));
        }
        const auto all_done = [&] { return std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome* one) { return one->done(); }); };
        REQUIRE(group.sim().run_until(all_done) == RunEnd::done);
        CHECK(outcomes[3]->status.code() == Errc::mismatch);
        for (int rank = 0; rank < 4 - joined; ++rank) {
          CAPTURE(rank);
          CHECK(outcomes[static_cast<std::size_t>(rank)]->status.code() == (is_trusted ? Errc::mismatch : Errc::peer_lost));
          if (is_trusted) continue;
          CHECK(group.world(rank).misfit() == outcomes[static_cast<std::size_t>(rank)]->status.rank());
          // With a second one it may be this one that says so first.
          if (joined == 1) CHECK(outcomes[static_cast<std::size_t>(rank)]->status.rank() == 3);
        }
      }
}
