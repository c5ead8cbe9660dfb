#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>

#include "core/plan/chunk_layout.hpp"
#include "tests/core/reference.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

using Engines = std::vector<GroupEngine*>;  // one group, by rank in the world; null: not a member

std::vector<int> world_ranks(const GroupEngine& group) {
  std::vector<int> ranks;
  for (int rank = 0; rank < group.members().size(); ++rank) ranks.push_back(group.members().world_rank(rank));
  return ranks;
}

/// The groups that a split made, each by rank in the world.
std::vector<Engines> apart(const Engines& made) {
  std::vector<Engines> groups;
  std::vector<bool> seen(made.size());
  for (std::size_t rank = 0; rank < made.size(); ++rank) {
    if (made[rank] == nullptr || seen[rank]) continue;
    Engines group(made.size());
    for (const int member : world_ranks(*made[rank])) {
      group[static_cast<std::size_t>(member)] = made[static_cast<std::size_t>(member)];
      seen[static_cast<std::size_t>(member)] = true;
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

/// A collective on one of the groups: what goes in and must come out, by rank in the group.
struct Operation {
  const Engines* group = nullptr;
  std::uint16_t stream = 0;
  CollectiveKind kind = CollectiveKind::barrier;
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  std::size_t count = 0;
  std::vector<Values> inputs;
  std::vector<Values> outputs;
  Call call;
  std::vector<Outcome*> outcomes;

  int size() const { return static_cast<int>(inputs.size()); }
};

Operation random_operation(SimRandom& random, const std::vector<Engines>& groups) {
  Operation operation;
  operation.group = &groups[random.below(groups.size())];
  operation.stream = static_cast<std::uint16_t>(random.below(2));
  operation.kind = static_cast<CollectiveKind>(random.below(5));
  operation.dtype = static_cast<DType>(random.below(kDTypeCount));
  operation.op = static_cast<ReduceOp>(random.below(3) + (operation.kind == CollectiveKind::reduce_scatter ? 1 : 0));
  if (operation.op == ReduceOp::prod) operation.op = ReduceOp::sum;
  operation.count = random.below(4) != 0 ? random.below(60) : random.below(6000);
  const auto size = std::count_if(operation.group->begin(), operation.group->end(), [](const auto* engine) { return engine != nullptr; });
  operation.root = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
  for (int rank = 0; rank < size; ++rank) {
    operation.inputs.push_back(random_values(operation.dtype, operation.count, random));
    Values output(operation.inputs.back().size());
    if (operation.kind == CollectiveKind::all_gather) output.resize(output.size() * static_cast<std::size_t>(size));
    if (operation.kind == CollectiveKind::reduce_scatter)
      output.resize(rows_of(operation.count, static_cast<int>(size), rank).count() * size_of(operation.dtype));
    if (operation.kind == CollectiveKind::broadcast) output = operation.inputs.back();
    operation.outputs.push_back(std::move(output));
  }
  operation.outcomes.resize(operation.inputs.size());
  return operation;
}

Result<CollectiveTask> make_task(Operation& operation, int rank, const WorldOptions& options) {
  Values& out = operation.outputs[static_cast<std::size_t>(rank)];
  const ConstTensorView input(operation.inputs[static_cast<std::size_t>(rank)].data(), operation.dtype, operation.count);
  const TensorView output(out.data(), operation.dtype, out.size() / size_of(operation.dtype));
  if (operation.kind == CollectiveKind::all_reduce) return make_all_reduce(operation.op, input, output, 1.0, options);
  if (operation.kind == CollectiveKind::reduce_scatter) return make_reduce_scatter(operation.op, input, output, options);
  if (operation.kind == CollectiveKind::all_gather) return make_all_gather(input, output, options);
  if (operation.kind == CollectiveKind::broadcast) return make_broadcast(output, operation.root, options);
  return make_barrier(options);
}

Values expected(const Operation& operation, int rank) {
  switch (operation.kind) {
    case CollectiveKind::all_reduce:
      return operation.size() > 1 ? reduced(operation.call, operation.inputs) : operation.inputs[0];
    case CollectiveKind::reduce_scatter: {
      const Values sum = operation.size() > 1 ? reduced(operation.call, operation.inputs) : operation.inputs[0];
      const ElementRange rows = rows_of(operation.count, operation.size(), rank);
      const auto width = static_cast<std::ptrdiff_t>(size_of(operation.dtype));
      return {sum.begin() + static_cast<std::ptrdiff_t>(rows.begin) * width, sum.begin() + static_cast<std::ptrdiff_t>(rows.end) * width};
    }
    case CollectiveKind::all_gather: {
      Values all;
      for (const Values& input : operation.inputs) all.insert(all.end(), input.begin(), input.end());
      return all;
    }
    case CollectiveKind::broadcast:
      return operation.inputs[static_cast<std::size_t>(operation.root)];
    default:
      return operation.outputs[static_cast<std::size_t>(rank)];
  }
}

/// A message in a group, each side as it ends.
struct Message {
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> received;
  Outcome* send = nullptr;
  Outcome* receive = nullptr;
};

/// The first member sends to the last.
void start_message(SimGroup& sim, const Engines& group, Message& message) {
  const auto members = world_ranks(**std::find_if(group.begin(), group.end(), [](const auto* engine) { return engine != nullptr; }));
  GroupEngine& from = *group[static_cast<std::size_t>(members.front())];
  GroupEngine& to = *group[static_cast<std::size_t>(members.back())];
  message.send = &sim.send_in(from, members.front(), 0, make_send(message.sent, to.options().rank, from.options()));
  message.receive = &sim.receive_in(to, members.back(), 0, make_receive(message.received, 0, to.options()));
}

WorldOptions random_options(SimRandom& random) {
  WorldOptions options;
  options.limits = {random.below(2) * 2000, 4000 + random.below(2) * 20'000};
  if (random.below(2) != 0) {
    options.segment_bytes = 104;
    options.eager_bytes = 300;
    options.eager_window_bytes = 2000;
    options.session.receive_buffer_bytes = 200;
  }
  return options;
}

std::vector<int> random_colors(SimRandom& random, int size) {
  std::vector<int> colors;
  for (int rank = 0; rank < size; ++rank) colors.push_back(static_cast<int>(random.below(4)) - 1);
  return colors;
}

std::uint64_t run_seed(std::uint64_t seed) {
  SimRandom random(seed * 7 + 3);
  GroupSetup setup;
  setup.size = static_cast<int>(1 + random.below(8));
  setup.seed = seed;
  if (random.below(2) != 0) setup.paths = rough_paths();
  setup.world = random_options(random);
  SimGroup sim(setup);
  sim.meet();
  std::vector<Engines> groups{sim.groups()};
  for (std::size_t first = 0, depth = 0; depth < 3; ++depth) {
    const std::size_t end = groups.size();
    for (; first < end; ++first) {
      const auto made = apart(sim.split(Engines(groups[first]), random_colors(random, setup.size)));
      groups.insert(groups.end(), made.begin(), made.end());
    }
  }
  std::deque<Operation> operations;
  for (int i = 0; i < 40; ++i) operations.push_back(random_operation(random, groups));
  std::deque<Message> messages;
  for (int rank = 0; rank < setup.size; ++rank) {
    for (auto& operation : operations) {
      GroupEngine* engine = (*operation.group)[static_cast<std::size_t>(rank)];
      if (engine == nullptr) continue;
      const int own = engine->options().rank;
      auto task = make_task(operation, own, engine->options());
      operation.call = task.value().call;
      operation.outcomes[static_cast<std::size_t>(own)] = &sim.start_in(*engine, rank, operation.stream, std::move(task));
    }
    if (random.below(2) != 0) sim.sim().run_for(Duration::microseconds(static_cast<std::int64_t>(random.below(500))));
  }
  for (const Engines& group : groups) {
    const auto count = std::count_if(group.begin(), group.end(), [](const auto* engine) { return engine != nullptr; });
    if (count < 2) continue;
    messages.push_back({std::vector<std::int64_t>(random.below(2000), static_cast<std::int64_t>(messages.size())), {}});
    messages.back().received.resize(messages.back().sent.size());
    start_message(sim, group, messages.back());
  }
  REQUIRE(sim.run_until_done());
  for (const Operation& operation : operations) {
    for (int rank = 0; rank < operation.size(); ++rank) {
      CAPTURE(describe(operation.call), rank);
      const Outcome& outcome = *operation.outcomes[static_cast<std::size_t>(rank)];
      INFO(outcome.status.text());
      REQUIRE(outcome.status.ok());
      REQUIRE(operation.outputs[static_cast<std::size_t>(rank)] == expected(operation, rank));
    }
  }
  for (const Message& message : messages) {
    REQUIRE(message.send->status.ok());
    REQUIRE(message.receive->status.ok());
    REQUIRE(message.received == message.sent);
  }
  sim.close_cleanly();
  return sim.sim().trace_hash();
}

/// Four ranks, split by parity, on calm paths.
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

TEST_CASE("random splits to depth three run every collective at once and give the promised bits") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    run_seed(seed);
  }
}

TEST_CASE("the same seed gives the same trace of splits") {
  for (const auto seed : seeds(5)) {
    CAPTURE(seed);
    CHECK(run_seed(seed) == run_seed(seed));
  }
}

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
  // Of a part: the old rank is the one in the part.
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
      // Each rank in another order.
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
        if (rank == victim) continue;  // nobody's operation with the victim can end
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
