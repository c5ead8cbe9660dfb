// Tests of how all ranks change their parts between the same two operations.
#include "core/engine/parts_switch.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <map>

#include "sim/sim_random.hpp"
#include "tests/core/probes_setup.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

using Speeds = std::vector<std::uint32_t>;

/// What each operation has given on each rank, by stream and number.
using Results = std::map<std::pair<std::uint16_t, int>, std::vector<std::uint64_t>>;

/// Averages f16 and sums f32, whose bits depend on the order of additions, on one stream of one rank: several at a time, of all sizes.
class Loop {
 public:
  Loop(SimGroup& group, int rank, std::uint16_t stream, int rounds, Results& results)
      : group_(group), rank_(rank), stream_(stream), rounds_(rounds), results_(results) {
    for (int i = 0; i < 3; ++i) next();
  }
  Loop(const Loop&) = delete;
  bool done() const { return ended_ == rounds_; }
  int ended() const { return ended_; }
  const Status& failure() const { return failure_; }

 private:
  void next() {
    if (started_ == rounds_) return;
    const int number = started_++;
    // The same on all ranks.
    SimRandom shape(static_cast<std::uint64_t>(number) * 64 + stream_);
    const bool is_mean = shape.below(2) == 0;
    const std::size_t count = shape.below(6) == 0 ? shape.below(40) : shape.below(9000);
    SimRandom random(static_cast<std::uint64_t>(number * 100 + rank_) * 64 + stream_);
    auto& values = buffers_.emplace_back(count * 4);
    const TensorView view(values.data(), is_mean ? DType::f16 : DType::f32, count * (is_mean ? 2 : 1));
    fill(random, values, is_mean);
    auto task =
        is_mean ? make_all_mean(view, view, group_.options(rank_)) : make_all_reduce(ReduceOp::sum, view, view, 1, group_.options(rank_));
    task.value().timeout = Duration::seconds(30);
    task.value().completion = [this, number, &values](const Status& status) { on_done(number, values, status); };
    group_.world(rank_).group().start(stream_, std::move(task).value());
  }
  static void fill(SimRandom& random, std::vector<std::byte>& values, bool is_half) {
    for (std::size_t at = 0; at < values.size(); at += is_half ? 2 : 4) {
      const float wide = 1 + static_cast<float>(random.below(1 << 20)) / (1 << 20);
      const auto half = static_cast<std::uint16_t>(0x7800 + random.below(0x300));  // near the largest f16, so that sums would overflow
      std::memcpy(values.data() + at, is_half ? static_cast<const void*>(&half) : &wide, is_half ? 2 : 4);
    }
  }
  void on_done(int number, std::vector<std::byte>& values, const Status& status) {
    ++ended_;
    if (!status.ok()) {
      failure_ = status;
      started_ = rounds_;
      return;
    }
    results_[{stream_, number}].push_back(hash_of(values));
    values = {};
    next();
  }
  static std::uint64_t hash_of(const std::vector<std::byte>& values) {
    std::uint64_t hash = 14'695'981'039'346'656'037u;
    for (const std::byte value : values) hash = (hash ^ static_cast<std::uint64_t>(value)) * 1'099'511'628'211u;
    return hash;
  }

  SimGroup& group_;
  const int rank_;
  const std::uint16_t stream_;
  const int rounds_;
  Results& results_;
  std::deque<std::vector<std::byte>> buffers_;
  int started_ = 0, ended_ = 0;
  Status failure_;
};

GroupSetup parts_setup(int natives, int guests, std::uint64_t seed) {
  GroupSetup setup = probes_setup(natives, guests);
  setup.seed = seed;
  setup.world.placement.parts = PartsPolicy::measured;
  setup.world.limits = {300, 5000};
  setup.world.leaf_limits = {1000, 0, 3000, 16};
  return setup;
}

Speeds random_speeds(SimRandom& random, int natives, int guests) {
  Speeds speeds;
  for (int rank = 0; rank < natives; ++rank)
    speeds.push_back(random.below(2) == 0 ? kFullSpeed : static_cast<std::uint32_t>(1 + random.below(kFullSpeed)));
  speeds.resize(static_cast<std::size_t>(natives + guests), kFullSpeed);
  return speeds;
}

/// What a rank says of the parts once it has taken `wanted`: if all natives are equally fast, nobody is slow.
Speeds taken(const Speeds& wanted, int guests) {
  Topology topology = Topology::of_world(static_cast<int>(wanted.size()), guests);
  topology.set_speeds(wanted);
  Speeds speeds;
  for (int rank = 0; rank < static_cast<int>(wanted.size()); ++rank) speeds.push_back(topology.speed(rank));
  return speeds;
}

bool all_done(const std::deque<Loop>& loops) {
  return std::all_of(loops.begin(), loops.end(), [](const Loop& loop) { return loop.done(); });
}

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
      for (std::uint16_t stream = 0; stream < 3; ++stream) loops.emplace_back(group, rank, stream, 12, results);
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
      CAPTURE(operation.first, operation.second);
      CHECK(hashes == std::vector<std::uint64_t>(static_cast<std::size_t>(group.size()), hashes[0]));
    }
    group.close_cleanly();
  }
  CHECK(changes > 0);
}

TEST_CASE("in a world in rank order the bits are those of even parts, whenever parts change") {
  for (const auto seed : seeds(30)) {
    SimRandom random(seed);
    const int natives = static_cast<int>(3 + random.below(4));
    Results results[2];
    for (const bool changes : {false, true}) {
      GroupSetup setup = parts_setup(natives, 0, seed);
      setup.world.placement.order = ReduceOrder::rank;
      SimGroup group(setup);
      group.meet();
      std::deque<Loop> loops;
      for (int rank = 0; rank < natives; ++rank) loops.emplace_back(group, rank, 0, 20, results[changes ? 1 : 0]);
      while (!all_done(loops)) {
        group.sim().run_for(Duration::microseconds(500));
        if (changes) group.world(0).parts().change(random_speeds(random, natives, 0), [](bool) {});
      }
      group.sim().run_for(Duration::seconds(1));
      group.close_cleanly();
    }
    CAPTURE(seed, natives);
    CHECK(results[0] == results[1]);
  }
}

TEST_CASE("an all-reduce is divided by the new parts once they hold, and other groups keep theirs") {
  GroupSetup setup = parts_setup(4, 0, 1);
  setup.world.leaf_limits = {};
  SimGroup group(setup);
  for (int rank = 0; rank < 4; ++rank) group.sim().limit_port(group.node(rank), rank == 2 ? 3'125'000 : 12'500'000);
  group.meet();
  // They were measured as unequal when the ranks met.
  CHECK(group.world(3).parts().in_use() == Speeds{1024, 1024, 256, 1024});
  const auto others = group.split(group.groups(), {0, 0, 0, 0});
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
  CHECK(took(others) / by_speed < 1.15);
  group.world(0).parts().change({1024, 1024, 256, 1024}, [](bool changed) { CHECK(changed); });
  CHECK(took(group.groups()) / by_speed < 1.15);
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
    Results results;
    std::deque<Loop> loops;
    for (int rank = 0; rank < 4; ++rank) loops.emplace_back(group, rank, 0, 5, results);
    REQUIRE(group.sim().run_until([&] { return all_done(loops); }, {.time = Duration::seconds(20)}) == RunEnd::done);
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
  CHECK(failure_after(1, 0, {wire::PartsAnswer{7, {3}}, wire::LinkRates{std::vector<std::uint32_t>(9, 1)}}).ok());
}

TEST_CASE("a change that would reach into operations that have started ends the world") {
  SimGroup group(parts_setup(3, 0, 5));
  group.meet();
  Results results;
  std::deque<Loop> loops;
  for (int rank = 0; rank < 3; ++rank) loops.emplace_back(group, rank, 0, 4, results);
  REQUIRE(group.sim().run_until([&] { return all_done(loops); }, {.time = Duration::seconds(20)}) == RunEnd::done);
  group.world(0).send_control(2, wire::PartsQuestion{1});
  group.world(0).send_control(2, wire::PartsChange{1, {1024, 256, 1024}, {3}});
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
    group.world(0).send_control(2, wire::PartsChange{number, {1024, 256, 1024}, {first}});
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
