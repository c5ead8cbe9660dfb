#include <catch2/catch.hpp>

#include "tests/core/reference.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

struct Message {
  int from = 0, to = 0;
  std::uint16_t stream = 0;
  DType dtype = DType::f32;
  Shape shape{};
  Values sent;
  Values received;
  Outcome* send = nullptr;
  Outcome* receive = nullptr;
  bool refused = false;

  ConstTensorView source() const { return {sent.data(), dtype, shape}; }
  TensorView destination() { return {received.data(), dtype, shape}; }
};

Message random_message(SimRandom& random, int size) {
  Message message;
  message.from = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
  message.to = static_cast<int>((static_cast<std::uint64_t>(message.from) + 1 + random.below(static_cast<std::uint64_t>(size - 1))) %
                                static_cast<std::uint64_t>(size));
  message.stream = static_cast<std::uint16_t>(random.below(3));
  message.dtype = static_cast<DType>(random.below(kDTypeCount));
  const std::size_t count = random.below(10) == 0 ? random.below(60'000) : random.below(50);
  message.shape = Shape{static_cast<std::int64_t>(count)};
  message.sent = random_values(message.dtype, count, random);
  message.received.resize(message.sent.size());
  message.refused = random.below(10) == 0;
  return message;
}

std::uint64_t run_seed(std::uint64_t seed) {
  SimRandom random(seed * 3 + 7);
  GroupSetup setup;
  setup.size = static_cast<int>(2 + random.below(4));
  setup.seed = seed;
  if (random.below(2) != 0) setup.paths = rough_paths();
  if (random.below(2) != 0) setup.world.early_limits = {random.below(3) * 300, 512 * (1 + random.below(4))};
  if (random.below(2) != 0) {
    setup.world.segment_bytes = 100;
    setup.world.eager_bytes = random.below(2) * 500;
    setup.world.session.receive_buffer_bytes = 200;
  }
  SimGroup group(setup);
  group.meet();
  std::vector<Message> messages;
  for (int i = 0; i < 40; ++i) messages.push_back(random_message(random, setup.size));
  Duration send_delay{};
  Duration receive_delay{};
  for (auto& message : messages) {
    send_delay.nanoseconds += static_cast<std::int64_t>(random.below(2) * random.below(400'000));
    receive_delay.nanoseconds += static_cast<std::int64_t>(random.below(2) * random.below(400'000));
    group.node(message.from).loop().after(send_delay, [&] {
      message.send = &group.send(message.from, message.stream, make_send(message.source(), message.to, group.options(message.from)));
    });
    group.node(message.to).loop().after(receive_delay, [&] {
      TensorView view = message.destination();
      if (message.refused) view = TensorView(view.data(), view.dtype(), Shape{1, message.shape[0]});
      message.receive = &group.receive(message.to, message.stream, make_receive(view, message.from, group.options(message.to)));
    });
  }
  const auto finished = [&] {
    return std::all_of(messages.begin(), messages.end(),
                       [](const Message& m) { return m.send != nullptr && m.send->done() && m.receive != nullptr && m.receive->done(); });
  };
  REQUIRE(group.sim().run_until(finished, {.time = Duration::seconds(3000)}) == RunEnd::done);
  for (const auto& message : messages) {
    CAPTURE(message.from, message.to, message.stream, to_string(message.shape));
    INFO(message.send->status.text());
    INFO(message.receive->status.text());
    REQUIRE(message.send->completions == 1);
    REQUIRE(message.receive->completions == 1);
    const Errc expected = message.refused ? Errc::mismatch : Errc::ok;
    REQUIRE(message.send->status.code() == expected);
    REQUIRE(message.receive->status.code() == expected);
    if (!message.refused) REQUIRE(message.received == message.sent);
  }
  group.close_cleanly();
  return group.sim().trace_hash();
}

}  // namespace

TEST_CASE("messages arrive in order between any two ranks, refused ones among them") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    run_seed(seed);
  }
}

TEST_CASE("the same seed gives the same trace of messages") {
  for (const auto seed : seeds(5)) {
    CAPTURE(seed);
    CHECK(run_seed(seed) == run_seed(seed));
  }
}

TEST_CASE("a refused message names both sides, and the group lives on") {
  const std::size_t count = GENERATE(10, 100'000);
  const bool receive_first = GENERATE(false, true);
  CAPTURE(count, receive_first);
  SimGroup group(GroupSetup{});
  group.meet();
  std::vector<float> values(count, 1.0F);
  std::vector<std::int32_t> other(count);
  Outcome* received = nullptr;
  if (receive_first) received = &group.receive(1, 0, make_receive(other, 0, group.options(1)));
  group.sim().run_for(Duration::milliseconds(20));
  Outcome& sent = group.send(0, 0, make_send(values, 1, group.options(0)));
  group.sim().run_for(Duration::milliseconds(20));
  if (!receive_first) received = &group.receive(1, 0, make_receive(other, 0, group.options(1)));
  REQUIRE(group.run_until_done());
  for (const Outcome* outcome : {&sent, static_cast<Outcome*>(received)}) {
    CHECK(outcome->status.code() == Errc::mismatch);
    CHECK_THAT(outcome->status.text(),
               Contains("f32 (" + std::to_string(count) + ",)") && Contains("i32") && Contains("rank 0") && Contains("rank 1"));
  }
  std::vector<float> more(count);
  Outcome& next_send = group.send(0, 0, make_send(values, 1, group.options(0)));
  Outcome& next_receive = group.receive(1, 0, make_receive(more, 0, group.options(1)));
  REQUIRE(group.run_until_done());
  CHECK(next_send.status.ok());
  CHECK(next_receive.status.ok());
  CHECK(more == values);
  group.close_cleanly();
}

TEST_CASE("a receiver may leave right after it refused a message whose bytes are still coming") {
  for (const auto seed : seeds(40)) {
    CAPTURE(seed);
    GroupSetup setup;
    setup.seed = seed;
    setup.world.segment_bytes = 1000;
    SimGroup group(setup);
    group.meet();
    std::vector<float> values(15'000);
    Outcome& sent = group.send(0, 0, make_send(values, 1, group.options(0)));
    std::vector<float> less(3);
    group.receive(1, 0, make_receive(less, 0, group.options(1)));
    REQUIRE(group.sim().run_until([&] { return !group.world(1).busy(); }) == RunEnd::done);
    group.close(1);
    REQUIRE(group.run_until_done());
    CHECK(sent.status.code() == Errc::mismatch);
    CHECK(group.world(0).failure().ok());
  }
}

TEST_CASE("a rank that is far ahead in many streams waits, and its peer catches up in another order") {
  GroupSetup setup;
  setup.world.limits = {64, 128};
  SimGroup group(setup);
  group.meet();
  constexpr std::uint16_t kStreams = 1000;
  constexpr int kRounds = 20;
  std::vector<float> ahead(std::size_t{2} * kStreams * kRounds, 1.0F), behind(ahead.size(), 2.0F);
  std::vector<Outcome*> outcomes;
  const auto call = [&](int rank, std::vector<float>& values, std::uint16_t stream, int round) {
    const std::size_t at = 2 * (stream * static_cast<std::size_t>(kRounds) + static_cast<std::size_t>(round));
    const auto sum = std::span(values).subspan(at, 1), message = std::span(values).subspan(at + 1, 1);
    outcomes.push_back(&group.start(rank, stream, make_all_reduce(ReduceOp::sum, sum, sum, 1, group.options(rank))));
    outcomes.push_back(rank == 0 ? &group.send(0, stream, make_send(message, 1, group.options(0)))
                                 : &group.receive(1, stream, make_receive(message, 0, group.options(1))));
  };
  for (std::uint16_t stream = 0; stream < kStreams; ++stream)
    for (int round = 0; round < kRounds; ++round) call(0, ahead, stream, round);
  group.sim().run_for(Duration::seconds(1));
  CHECK(group.world(1).kept_early(0).fits_in(EarlyBudget::limits_in_world(2)));
  for (std::uint16_t stream = kStreams; stream-- > 0;)
    for (int round = 0; round < kRounds; ++round) call(1, behind, stream, round);
  REQUIRE(group.run_until_done());
  CHECK(std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome* outcome) { return outcome->status.ok(); }));
  for (std::size_t i = 0; i < behind.size(); i += 2) ahead[i + 1] = 3.0F, behind[i + 1] += 2.0F;
  CHECK(behind == std::vector<float>(behind.size(), 3.0F));
  CHECK(ahead == behind);
  CHECK(group.world(1).kept_early(0).record_bytes + group.world(1).kept_early(0).payload_bytes == 0);
  group.close_cleanly();
}

TEST_CASE("a message nobody receives and one nobody sends end with their deadline") {
  SimGroup group(GroupSetup{});
  group.meet();
  std::vector<float> values(10);
  const bool sends = GENERATE(false, true);
  auto task = sends ? make_send(values, 1, group.options(0)) : make_receive(values, 1, group.options(0));
  task.value().timeout = Duration::seconds(2);
  Outcome& outcome = sends ? group.send(0, 3, std::move(task)) : group.receive(0, 3, std::move(task));
  REQUIRE(group.run_until_done(Duration::seconds(3)));
  CHECK(outcome.status.code() == Errc::timed_out);
  CHECK(outcome.status.rank() == 1);
  CHECK_THAT(outcome.status.text(), Contains("f32 (10,)") && Contains("2000 ms") && Contains("stream 3"));
}
