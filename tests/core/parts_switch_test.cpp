// Tests of how all ranks change their parts between the same two operations.
#include "core/engine/parts_switch.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <optional>

#include "tests/core/parts_loop.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

using Speeds = PartsSpeeds;
using Results = PartsResults;
using Loop = PartsLoop;

}  // namespace

TEST_CASE("parts change between the same two operations on all ranks, whatever is under way") {
  int changes = 0;
  for (const auto seed : seeds(60)) {
    SimRandom random(seed);
    const int natives = static_cast<int>(3 + random.below(5)), guests = static_cast<int>(random.below(3));
    GroupSetup setup = parts_setup(natives, guests, seed);
    if (seed % 2 == 0) setup.paths = rough_paths();
    setup.world.placement.order = static_cast<ReduceOrder>(random.below(kReduceOrderCount));
    CAPTURE(seed, natives, guests);
    SimGroup group(setup);
    group.meet();
    Results results;
    std::deque<Loop> loops;
    for (int rank = 0; rank < group.size(); ++rank)
      for (std::uint16_t stream = 0; stream < 3; ++stream) loops.emplace_back(group.world(rank).group(), stream, 12, results);
    while (!all_done(loops)) {
      group.sim().run_for(Duration::microseconds(static_cast<std::int64_t>(random.below(3000))));
      if (random.below(6) != 0) continue;
      const Speeds wanted = random_speeds(random, natives, guests);
      group.world(0).parts().change(wanted, [&, wanted](bool changed) {
        CHECK(changed);
        ++changes;
        CHECK(group.world(0).parts().in_use() == taken(wanted, guests));
      });
    }
    for (const Loop& loop : loops) REQUIRE(loop.failure().ok());
    group.sim().run_for(Duration::seconds(1));
    for (int rank = 1; rank < group.size(); ++rank) CHECK(group.world(rank).parts().in_use() == group.world(0).parts().in_use());
    CHECK(results.size() == 36);
    for (const auto& [operation, hashes] : results) {
      CAPTURE(std::get<1>(operation), std::get<2>(operation));
      CHECK(hashes == std::vector<std::uint64_t>(static_cast<std::size_t>(group.size()), hashes[0]));
    }
    group.close_cleanly();
  }
  CHECK(changes > 0);
}

TEST_CASE("in a world in rank order, and by passive parts, the bits are those of even parts, whenever parts change") {
  for (const bool in_rank_order : {true, false}) {
    int changed = 0;
    for (const auto seed : seeds(30)) {
      SimRandom random(seed);
      const int natives = static_cast<int>(3 + random.below(4)), guests = static_cast<int>(random.below(2));
      Results results[2];
      for (const bool changes : {false, true}) {
        GroupSetup setup = parts_setup(natives, guests, seed);
        setup.world.placement.order = in_rank_order ? ReduceOrder::rank : ReduceOrder::any;
        setup.world.placement.parts = in_rank_order ? PartsPolicy::measured : PartsPolicy::passive;
        SimGroup group(setup);
        group.meet();
        std::deque<Loop> loops;
        for (int rank = 0; rank < group.size(); ++rank) loops.emplace_back(group.world(rank).group(), 0, 20, results[changes ? 1 : 0]);
        while (!all_done(loops)) {
          group.sim().run_for(Duration::microseconds(500));
          if (changes) group.world(0).parts().change(random_speeds(random, natives, guests), [&](bool is) { changed += is ? 1 : 0; });
        }
        group.sim().run_for(Duration::seconds(1));
        group.close_cleanly();
      }
      CAPTURE(in_rank_order, seed, natives, guests);
      CHECK(results[0] == results[1]);
    }
    CHECK(changed > 0);
  }
}

TEST_CASE("an all-reduce is divided by the new parts once they hold, in other groups, too") {
  GroupSetup setup = parts_setup(4, 0, 1);
  setup.world.leaf_limits = {};
  SimGroup group(setup);
  for (int rank = 0; rank < 4; ++rank) group.sim().limit_port(group.node(rank), rank == 2 ? 3'125'000 : 12'500'000);
  group.meet();
  // They were measured as unequal when the ranks met.
  CHECK(group.world(3).parts().in_use() == Speeds{1024, 1024, 256, 1024});
  const auto others = group.split(group.groups(), {0, 0, 0, 0}, {3, 2, 1, 0});
  const auto took = [&](const std::vector<GroupEngine*>& in) {
    const Instant start = group.sim().now();
    std::vector<std::vector<std::int32_t>> values(4, std::vector<std::int32_t>(100'000, 1));
    for (int rank = 0; rank < 4; ++rank) {
      const TensorView view(values[static_cast<std::size_t>(rank)]);
      GroupEngine& engine = *in[static_cast<std::size_t>(rank)];
      group.start_in(engine, rank, 0, make_all_reduce(ReduceOp::sum, view, view, 1, engine.options()));
    }
    REQUIRE(group.run_until_done());
    for (const auto& of_rank : values) CHECK(of_rank == std::vector<std::int32_t>(100'000, 4));
    return static_cast<double>((group.sim().now() - start).nanoseconds);
  };
  const double by_speed = took(group.groups());
  group.world(0).parts().change(Speeds(4, kFullSpeed), [](bool changed) { CHECK(changed); });
  const double even = took(group.groups());
  CHECK(even / by_speed > 1.25);
  CHECK(took(others) / even > 0.85);
  group.world(0).parts().change({1024, 1024, 256, 1024}, [](bool changed) { CHECK(changed); });
  CHECK(took(group.groups()) / by_speed < 1.15);
  CHECK(took(others) / by_speed < 1.15);
  CHECK(took(group.split(group.groups(), {0, 0, 0, 0})) / by_speed < 1.15);
  group.close_cleanly();
}

TEST_CASE("a change is taken back where a rank does not answer in time, or leaves, and operations go on") {
  SECTION("it stands still") {
    SimGroup group(parts_setup(3, 1, 2));
    group.meet();
    group.sim().freeze(group.node(3)).now();
    group.sim().run_for(Duration::milliseconds(1));
    std::optional<bool> changed;
    const Speeds before = group.world(0).parts().in_use();
    CHECK(group.world(0).parts().change({1024, 256, 1024, 1024}, [&](bool is) { changed = is; }));
    CHECK_FALSE(group.world(0).parts().change({1024, 1, 1024, 1024}, [](bool) { FAIL("two changes at a time"); }));
    group.sim().run_for(Duration::milliseconds(900));
    CHECK_FALSE(changed);
    group.sim().run_for(Duration::milliseconds(200));
    CHECK(changed == false);
    group.sim().resume(group.node(3)).now();
    run_rounds(group, 5);
    for (int rank = 0; rank < 4; ++rank) CHECK(group.world(rank).parts().in_use() == before);
    // The next one is agreed on.
    CHECK(group.world(0).parts().change({1024, 256, 1024, 1024}, [&](bool is) { changed = is; }));
    group.sim().run_for(Duration::milliseconds(100));
    CHECK(changed == true);
    CHECK(group.world(3).parts().in_use() == Speeds{1024, 256, 1024, 1024});
    group.close_cleanly();
  }
  SECTION("it leaves") {
    for (const int leaver : {0, 2}) {
      SimGroup group(parts_setup(4, 0, 3));
      group.meet();
      group.sim().freeze(group.node(1)).now();
      group.sim().run_for(Duration::milliseconds(1));
      group.world(0).parts().change({1024, 256, 1024, 1024}, [&](bool changed) { CHECK_FALSE(changed); });
      group.sim().run_for(Duration::milliseconds(10));
      group.close(leaver);
      group.sim().run_for(Duration::milliseconds(10));
      group.sim().resume(group.node(1)).now();
      group.sim().run_for(Duration::milliseconds(100));
      CAPTURE(leaver);
      if (leaver != 0) CHECK_FALSE(group.world(0).parts().change({1024, 256, 1024, 1024}, [](bool) {}));
      // What the others have among themselves goes on.
      const int one = 1, other = 3;
      std::vector<std::int32_t> sent{41}, come{0};
      group.send(one, 0, make_send(sent, other, group.options(one)));
      group.receive(other, 0, make_receive(come, one, group.options(other)));
      REQUIRE(group.run_until_done());
      CHECK(come == sent);
      CHECK(group.world(3).failure().ok());
    }
  }
}

TEST_CASE("messages about parts that no rank can send end the world, and name the sender") {
  const auto failure_after = [](int from, int to, const std::vector<wire::ControlMessage>& messages) {
    SimGroup group(parts_setup(3, 0, 4));
    group.meet();
    for (const auto& message : messages) group.world(from).send_control(to, message);
    group.sim().run_for(Duration::milliseconds(100));
    return group.world(to).failure();
  };
  const wire::PartsQuestion question{7};
  const auto is_refused = [&](int from, int to, const std::vector<wire::ControlMessage>& messages, const char* text) {
    const Status failure = failure_after(from, to, messages);
    CHECK(failure.code() == Errc::protocol_error);
    CHECK(failure.rank() == from);
    CHECK_THAT(std::string(failure.text()), Contains(text));
  };
  is_refused(1, 2, {question}, "a question about parts that is not due");
  is_refused(1, 0, {question}, "a question about parts that is not due");
  is_refused(0, 2, {question, question}, "a question about parts that is not due");
  is_refused(0, 2, {wire::PartsChange{7, {}, {}}}, "a change of parts that is not due");
  is_refused(0, 2, {question, wire::PartsChange{8, {}, {}}}, "a change of parts that is not due");
  is_refused(0, 2, {question, wire::PartsChange{7, {1024, 1024}, {}}}, "a change of parts that does not fit");
  is_refused(0, 2, {question, wire::PartsChange{7, {1024, 0, 1024}, {}}}, "a change of parts that does not fit");
  is_refused(0, 2, {question, wire::PartsChange{7, {1024, 1025, 1024}, {}}}, "a change of parts that does not fit");
  CHECK(failure_after(0, 2, {question, wire::PartsChange{7, {1024, 1, 1024}, {}}}).ok());
  CHECK(failure_after(0, 2, {question, wire::PartsChange{7, {}, {}}}).ok());
  // What comes too late, or says too much, changes nothing.
  CHECK(failure_after(1, 0, {wire::PartsAnswer{7, {{0, {3}}}, false}, wire::LinkRates{std::vector<std::uint32_t>(9, 1)}}).ok());
}

TEST_CASE("a change that would reach into operations that have started ends the world") {
  SimGroup group(parts_setup(3, 0, 5));
  group.meet();
  run_rounds(group, 4);
  group.world(0).send_control(2, wire::PartsQuestion{1});
  group.world(0).send_control(2, wire::PartsChange{1, {1024, 256, 1024}, {{0, {3}}}});
  group.sim().run_for(Duration::milliseconds(100));
  CHECK(group.world(2).failure().code() == Errc::protocol_error);
  CHECK(group.world(2).failure().rank() == 0);
}

TEST_CASE("changes of parts that are kept for operations take a bounded memory") {
  SimGroup group(parts_setup(3, 0, 7));
  group.meet();
  std::uint32_t number = 0;
  const auto change = [&](std::uint64_t first) {
    group.world(0).send_control(2, wire::PartsQuestion{++number});
    group.world(0).send_control(2, wire::PartsChange{number, {1024, 256, 1024}, {{0, {first}}}});
  };
  // Those that hold at once replace each other.
  for (int i = 0; i < 1000; ++i) change(0);
  group.sim().run_for(Duration::seconds(1));
  CHECK(group.world(2).failure().ok());
  CHECK(group.world(2).group().kept_changes() == 1);
  for (int i = 0; i < 300; ++i) change(1'000'000);
  group.sim().run_for(Duration::seconds(1));
  CHECK(group.world(2).failure().code() == Errc::protocol_error);
  CHECK(group.world(2).group().kept_changes() <= 256);
}

TEST_CASE("where a rank has not called what others have, parts change as long as it may keep the changes, and then stay") {
  SimGroup group(parts_setup(3, 0, 8));
  group.meet();
  std::vector<std::vector<std::int32_t>> values(3, std::vector<std::int32_t>(2000, 1));
  const auto start = [&](int rank) {
    const TensorView view(values[static_cast<std::size_t>(rank)]);
    group.start(rank, 0, make_all_reduce(ReduceOp::sum, view, view, 1, group.options(rank)));
  };
  for (const int rank : {0, 1}) start(rank);
  int changes = 0;
  for (std::uint32_t i = 0; i < 300; ++i) {
    group.world(0).parts().change({1024, 256, 1 + i}, [&](bool changed) { changes += changed ? 1 : 0; });
    group.sim().run_for(Duration::milliseconds(10));
  }
  CHECK(changes == 256);
  CHECK(group.world(0).group().kept_changes() == 1);
  CHECK(group.world(2).group().kept_changes() == 256);
  start(2);
  REQUIRE(group.run_until_done());
  for (const auto& of_rank : values) CHECK(of_rank == std::vector<std::int32_t>(2000, 3));
  group.close_cleanly();
}

TEST_CASE("a rank that refuses a change, or ranks that know of more operations than it can name, have it taken back") {
  const auto is_taken_back = [](const std::optional<wire::PartsAnswer>& answer) {
    SimGroup group(parts_setup(4, 0, 9));
    group.meet();
    run_rounds(group, 4);
    const Speeds before = group.world(0).parts().in_use();
    std::optional<bool> changed;
    CHECK(group.world(0).parts().change({1024, 256, 1024, 1024}, [&](bool is) { changed = is; }));
    // It comes before the one that the rank gives by itself.
    if (answer) group.world(1).send_control(0, *answer);
    group.sim().run_for(Duration::milliseconds(100));
    CHECK(changed.has_value());
    for (int rank = 0; rank < 4; ++rank) {
      CHECK(group.world(rank).failure().ok());
      CHECK(group.world(rank).parts().in_use() == (changed == true ? Speeds{1024, 256, 1024, 1024} : before));
    }
    group.close_cleanly();
    return changed == false;
  };
  const auto answer_of = [](std::uint64_t groups, std::size_t streams) {
    wire::PartsAnswer answer{1, {}, false};
    for (std::uint64_t key = 1; key <= groups; ++key) answer.unstarted.push_back({key, std::vector<std::uint64_t>(streams, 1)});
    return answer;
  };
  CHECK_FALSE(is_taken_back(std::nullopt));
  CHECK(is_taken_back(wire::PartsAnswer{1, {}, true}));
  // Beside the group of all ranks, of which rank 0 knows operations itself.
  CHECK(is_taken_back(answer_of(wire::kMostToldGroups, 1)));
  CHECK(is_taken_back(answer_of(33, 1000)));
}

TEST_CASE("a rank that asks about parts and says nothing more ends the world when operations time out") {
  GroupSetup setup = parts_setup(3, 0, 6);
  setup.world.operation_timeout = Duration::seconds(5);
  SimGroup group(setup);
  group.meet();
  group.world(0).send_control(2, wire::PartsQuestion{1});
  group.sim().run_for(Duration::seconds(4));
  CHECK(group.world(2).failure().ok());
  group.sim().run_for(Duration::seconds(2));
  CHECK(group.world(2).failure().code() == Errc::timed_out);
  CHECK(group.world(2).failure().rank() == 0);
}
