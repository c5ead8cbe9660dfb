#include <catch2/catch.hpp>
#include <deque>

#include "sim/sim_random.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

/// A receive of rank 0's; the first element says who has sent the message, the second which of its messages it is.
struct Received {
  std::vector<std::int32_t> values;
  int source = -1;
  Outcome* outcome = nullptr;
};

/// Ranks 1 and up send to rank 0, which receives some of the messages from a rank that it names, the others from any.
void receive_from_any(std::uint64_t seed) {
  SimRandom random(seed * 5 + 1);
  GroupSetup setup;
  setup.size = static_cast<int>(2 + random.below(4));
  setup.seed = seed;
  if (random.below(2) != 0) setup.paths = rough_paths();
  if (random.below(2) != 0) setup.world.eager_bytes = random.below(2) * 500;
  SimGroup sim(setup);
  sim.meet();
  const std::size_t count = 2 + random.below(40);
  std::deque<std::vector<std::int32_t>> sent;
  std::deque<Received> received;
  std::vector<std::int32_t> next(static_cast<std::size_t>(setup.size));
  std::vector<Outcome*> sends;
  const auto receive = [&](int from) {
    Received& into = received.emplace_back(Received{std::vector<std::int32_t>(count), from});
    into.outcome = &sim.receive(
        0, 2, from >= 0 ? make_receive(into.values, from, sim.options(0)) : make_receive_any(into.values, into.source, sim.options(0)));
  };
  const auto send = [&](int from) {
    auto& message = sent.emplace_back(count);
    message[0] = from;
    message[1] = next[static_cast<std::size_t>(from)]++;
    sends.push_back(&sim.send(from, 2, make_send(message, 0, sim.options(from))));
  };
  const int by_name = static_cast<int>(random.below(3));
  for (int from = 1; from < setup.size; ++from)
    for (int i = 0; i < by_name; ++i) receive(from);
  int left = 20;
  for (int from = 1; from < setup.size; ++from)
    for (int i = 0; i < by_name; ++i, --left) send(from);
  for (; left > 0; --left) {
    const auto from = static_cast<int>(1 + random.below(static_cast<std::uint64_t>(setup.size - 1)));
    const bool send_first = random.below(2) != 0;
    if (send_first) send(from);
    receive(-1);
    if (!send_first) send(from);
    sim.sim().run_for(Duration::microseconds(static_cast<std::int64_t>(random.below(2'000))));
  }
  REQUIRE(sim.run_until_done());
  for (const Outcome* outcome : sends) CHECK(outcome->status.ok());
  std::vector<int> seen(next.size());
  for (const Received& message : received) {
    CHECK(message.outcome->status.ok());
    CHECK(message.values[0] == message.source);
    ++seen[static_cast<std::size_t>(message.source)];
  }
  for (std::size_t rank = 1; rank < next.size(); ++rank) CHECK(seen[rank] == next[rank]);
  sim.close_cleanly();
}

}  // namespace

TEST_CASE("messages from any rank come once each, and say from whom") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    receive_from_any(seed);
  }
}

TEST_CASE("messages of one rank come in its order, and those of several in turn") {
  GroupSetup setup;
  setup.size = 3;
  SimGroup sim(setup);
  sim.meet();
  std::deque<std::vector<std::int32_t>> sent;
  for (int number = 0; number < 3; ++number)
    for (int rank = 1; rank < 3; ++rank) {
      auto& message = sent.emplace_back(std::vector<std::int32_t>{rank, number});
      sim.send(rank, 0, make_send(message, 0, sim.options(rank)));
    }
  sim.sim().run_for(Duration::seconds(1));
  std::deque<Received> received(6, Received{std::vector<std::int32_t>(2)});
  for (Received& into : received) into.outcome = &sim.receive(0, 0, make_receive_any(into.values, into.source, sim.options(0)));
  REQUIRE(sim.run_until_done());
  for (std::size_t i = 0; i < received.size(); ++i) {
    CHECK(received[i].source == static_cast<int>(1 + i % 2));
    CHECK(received[i].values == std::vector<std::int32_t>{received[i].source, static_cast<std::int32_t>(i / 2)});
  }
  sim.close_cleanly();
}

TEST_CASE("a message of another shape is a mismatch for both, and the next one is received") {
  SimGroup sim(GroupSetup{});
  sim.meet();
  std::vector<float> three(3), four(4), into(4);
  int source = -1;
  Outcome& refused = sim.receive(0, 0, make_receive_any(into, source, sim.options(0)));
  Outcome& wrong = sim.send(1, 0, make_send(three, 0, sim.options(1)));
  REQUIRE(sim.run_until_done());
  CHECK(refused.status.code() == Errc::mismatch);
  CHECK(wrong.status.code() == Errc::mismatch);
  Outcome& taken = sim.receive(0, 0, make_receive_any(into, source, sim.options(0)));
  sim.send(1, 0, make_send(four, 0, sim.options(1)));
  REQUIRE(sim.run_until_done());
  CHECK(taken.status.ok());
  CHECK(source == 1);
  sim.close_cleanly();
}

TEST_CASE("a message from any rank that nobody sends ends with its deadline, and says what others do meanwhile") {
  GroupSetup setup;
  setup.size = 3;
  SimGroup sim(setup);
  sim.meet();
  std::vector<float> values(10);
  int source = -1;
  auto task = make_receive_any(values, source, sim.options(0));
  task.value().timeout = Duration::seconds(2);
  Outcome& outcome = sim.receive(0, 3, std::move(task));
  sim.sim().run_for(Duration::seconds(1));
  const wire::RankState state = sim.world(0).state();
  REQUIRE(state.running.size() == 1);
  CHECK(state.running[0].call == "recv(f32 (10,)) from any rank");
  CHECK(state.running[0].waits_for == std::vector<std::uint32_t>{1, 2});
  REQUIRE(sim.run_until_done(Duration::seconds(3)));
  CHECK(outcome.status.code() == Errc::timed_out);
  CHECK_THAT(outcome.status.text(), Contains("f32 (10,)") && Contains("from any rank") && Contains("2000 ms") && Contains("stream 3"));
}

TEST_CASE("a receive from any rank goes on while one rank is left, and ends when none is") {
  GroupSetup setup;
  setup.size = 3;
  SimGroup sim(setup);
  sim.meet();
  std::vector<float> values(1), sent{4};
  int source = -1;
  Outcome& first = sim.receive(0, 0, make_receive_any(values, source, sim.options(0)));
  sim.close(1);
  sim.sim().run_for(Duration::seconds(1));
  CHECK_FALSE(first.done());
  sim.send(2, 0, make_send(sent, 0, sim.options(2)));
  REQUIRE(sim.run_until_done());
  CHECK((first.status.ok() && source == 2 && values[0] == 4));
  Outcome& second = sim.receive(0, 0, make_receive_any(values, source, sim.options(0)));
  sim.close(2);
  REQUIRE(sim.run_until_done(Duration::seconds(10)));
  CHECK(second.status.code() == Errc::peer_lost);
  CHECK_THAT(second.status.text(), Contains("all others left"));
}

TEST_CASE("a group of one receives from nobody") {
  GroupSetup setup;
  setup.size = 2;
  SimGroup sim(setup);
  sim.meet();
  const auto alone = sim.split(sim.groups(), {0, 1});
  std::vector<float> values(1);
  int source = -1;
  CHECK_THAT(make_receive_any(values, source, alone[0]->options()).status().text(), Contains("no other rank"));
  sim.close_cleanly();
}
