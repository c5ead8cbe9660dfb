#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/core/operation.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

using Engines = std::vector<GroupEngine*>;  // one group, by rank in the world; null: not a member

/// Returns the groups that a split made, each by rank in the world.
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

GroupEngine& any_member(const Engines& group) {
  return **std::find_if(group.begin(), group.end(), [](const auto* engine) { return engine != nullptr; });
}

struct GroupOperation {
  const Engines* group;
  Operation operation;
};

/// A message in a group, with the outcome of each side.
struct Message {
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> received;
  Outcome* send = nullptr;
  Outcome* receive = nullptr;
};

/// Starts a message from the first member to the last.
void start_message(SimGroup& sim, const Engines& group, Message& message) {
  const auto members = world_ranks(any_member(group));
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
  if (random.below(2) != 0) options.early_limits = {random.below(2) * 500, 600 + random.below(2) * 4000};
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
  std::deque<GroupOperation> operations;
  std::deque<Message> messages;
  for (int i = 0; i < 40; ++i) {
    const Engines& group = groups[random.below(groups.size())];
    operations.push_back({&group, random_operation(random, any_member(group).options(), 6000)});
    operations.back().operation.outcomes.resize(static_cast<std::size_t>(any_member(group).options().size));
  }
  for (int rank = 0; rank < setup.size; ++rank) {
    for (auto& [group, operation] : operations) {
      GroupEngine* engine = (*group)[static_cast<std::size_t>(rank)];
      if (engine == nullptr) continue;
      const int own = engine->options().rank;
      operation.outcomes[static_cast<std::size_t>(own)] =
          &sim.start_in(*engine, rank, operation.stream, make_task(operation, own, engine->options()));
    }
    if (random.below(2) != 0) sim.sim().run_for(Duration::microseconds(static_cast<std::int64_t>(random.below(500))));
  }
  for (const Engines& group : groups) {
    if (any_member(group).options().size < 2) continue;
    messages.push_back({std::vector<std::int64_t>(random.below(2000), static_cast<std::int64_t>(messages.size())), {}});
    messages.back().received.resize(messages.back().sent.size());
    start_message(sim, group, messages.back());
  }
  REQUIRE(sim.run_until_done());
  for (auto& [group, operation] : operations) check_operation(operation, any_member(*group).options().size);
  for (const Message& message : messages) {
    REQUIRE(message.send->status.ok());
    REQUIRE(message.receive->status.ok());
    REQUIRE(message.received == message.sent);
  }
  sim.close_cleanly();
  return sim.sim().trace_hash();
}

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
