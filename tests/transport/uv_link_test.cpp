#include "tests/transport/loopback.hpp"

using namespace ringlet;
using namespace ringlet::test;

TEST_CASE("uv link: both directions at once stay intact through odd splits") {
  const auto longest_part = GENERATE(as<std::size_t>{}, 3, 1'000, 70'000);
  const std::size_t bytes = longest_part < 10 ? 100'003 : 20'000'003;
  CAPTURE(longest_part);
  Pair pair;
  PatternUser left(1, 2, bytes, longest_part);
  PatternUser right(2, 1, bytes / 2, longest_part);
  left.start_on(std::move(pair.dialled));
  right.start_on(std::move(pair.accepted));
  CHECK(left.sent_bytes == 0);
  REQUIRE(drive(pair.loop, [&] { return right.received_bytes == bytes && left.received_bytes == bytes / 2; }));
  CHECK(left.intact);
  CHECK(right.intact);
  CHECK(left.sent_bytes == bytes);
  CHECK_FALSE(left.failed());
  CHECK_FALSE(right.failed());
}

TEST_CASE("uv link: the system counts what has been sent, and for how long, or says that it does not") {
  Pair pair;
  constexpr std::size_t kBytes = 50'000'000;
  PatternUser left(1, 2, kBytes);
  PatternUser right(2, 1, 0);
  left.start_on(std::move(pair.dialled));
  right.start_on(std::move(pair.accepted));
  const Instant begin = pair.loop.now();
  REQUIRE(drive(pair.loop, [&] { return right.received_bytes == kBytes; }));
  const auto counters = left.link->send_counters();
  if (!counters) {
    WARN("this system does not count, or everything was sent within one of its ticks");
    return;
  }
  // The last bytes may not have been acknowledged, and the first one of a connection is not the program's.
  CHECK(counters->bytes <= kBytes + 1);
  CHECK(counters->bytes > kBytes / 2);
  const auto passed = static_cast<std::uint64_t>((pair.loop.now() - begin + Duration::milliseconds(20)).nanoseconds);
  CHECK(counters->busy_ns > 0);
  CHECK(counters->busy_ns <= passed);
}

TEST_CASE("uv link: two loops on one thread talk to each other") {
  UvLoop other_loop;
  UvNetwork other_network(other_loop);
  UvLoop loop;
  UvNetwork network(loop);
  PatternUser left(1, 2, 3'000'000);
  PatternUser right(2, 1, 3'000'000);
  auto listener = network.listen(kAnyPort, [&](std::unique_ptr<Link> link) { right.start_on(std::move(link)); });
  REQUIRE(listener.ok());
  other_network.dial(listener.value()->address(), kPatience,
                     [&](Result<std::unique_ptr<Link>> link) { left.start_on(std::move(link).value()); });
  const auto deadline = loop.now() + kPatience;
  while ((left.received_bytes < 3'000'000 || right.received_bytes < 3'000'000) && loop.now() < deadline) {
    loop.poll();
    other_loop.poll();
  }
  CHECK(left.intact);
  CHECK(right.intact);
  CHECK(left.received_bytes == 3'000'000);
  CHECK(right.received_bytes == 3'000'000);
}

TEST_CASE("uv link: what arrived before start is not lost") {
  Pair pair;
  PatternUser left(1, 2, 1'000);
  left.start_on(std::move(pair.dialled));
  REQUIRE(drive(pair.loop, [&] { return left.sent_bytes == 1'000; }));
  settle(pair.loop);
  PatternUser right(2, 1, 0);
  right.start_on(std::move(pair.accepted));
  CHECK(drive(pair.loop, [&] { return right.received_bytes == 1'000; }));
  CHECK(right.intact);
}

TEST_CASE("uv link: flush pushes out what was started between turns") {
  Pair pair;
  PatternUser left(1, 2, 10);
  left.start_on(std::move(pair.dialled));
  CHECK(left.sent_bytes == 0);
  CHECK(pair.loop.flush());
  CHECK(left.sent_bytes == 10);
}

TEST_CASE("uv link: one direction ends, the other goes on") {
  Pair pair;
  PatternUser left(1, 2, 1'000'000);
  PatternUser right(2, 1, 5'000'000);
  left.start_on(std::move(pair.dialled));
  left.link->finish_sending();
  right.link = std::move(pair.accepted);
  right.link->start(right);
  REQUIRE(drive(pair.loop, [&] { return right.ended; }));
  CHECK(right.received_bytes == 1'000'000);
  CHECK(left.sent_bytes == 1'000'000);
  left.link->wake();
  // Blocking turns must still block: if an ended direction stayed readable, they would spin.
  bool timer_ran = false;
  int turns = 0;
  pair.loop.after(Duration::milliseconds(20), [&] { timer_ran = true; });
  for (; !timer_ran; ++turns) pair.loop.wait();
  CHECK(turns < 20);
  right.link->wake();
  right.link->finish_sending();
  REQUIRE(drive(pair.loop, [&] { return left.ended; }));
  CHECK(left.received_bytes == 5'000'000);
  CHECK(left.intact);
  CHECK(right.intact);
  settle(pair.loop);
  CHECK_FALSE(left.failed());
  CHECK_FALSE(right.failed());
}

TEST_CASE("uv link: peers have names") {
  Pair pair;
  CHECK_THAT(pair.dialled->peer_name(), Catch::StartsWith("127.0.0.1:"));
  CHECK_THAT(pair.accepted->peer_name(), Catch::StartsWith("127.0.0.1:"));
  CHECK(pair.dialled->peer_name() != pair.accepted->peer_name());
}

TEST_CASE("uv link: destruction is safe in every callback") {
  const auto where = GENERATE(as<std::string>{}, "sent", "received", "ended");
  CAPTURE(where);
  Pair pair;
  PatternUser left(1, 2, 200'000);
  PatternUser right(2, 1, 200'000);
  if (where == "sent") left.on_sent = [&] { left.close(); };
  if (where == "received") left.on_received = [&] { left.close(); };
  if (where == "ended") {
    left.on_ended = [&] { left.close(); };
    right.on_received = [&] {
      if (right.received_bytes == 200'000) right.link->finish_sending();
    };
  }
  left.start_on(std::move(pair.dialled));
  right.start_on(std::move(pair.accepted));
  CHECK(drive(pair.loop, [&] { return right.ended || right.failed(); }));
  CHECK_FALSE(left.link);
}

TEST_CASE("uv link: a callback of one link may destroy another one") {
  Pair first;
  PatternUser left(1, 2, 100);
  PatternUser right(2, 1, 100);
  left.on_received = [&] { right.close(); };
  right.on_received = [&] { left.close(); };
  left.start_on(std::move(first.dialled));
  right.start_on(std::move(first.accepted));
  CHECK(drive(first.loop, [&] { return !left.link || !right.link; }));
  settle(first.loop);
}

TEST_CASE("uv link: links and listeners that outlive their loop are closed and inert") {
  std::unique_ptr<Link> unstarted;
  std::unique_ptr<Listener> listener;
  PatternUser user(1, 2, 1'000);
  {
    Pair pair;
    user.start_on(std::move(pair.dialled));
    unstarted = std::move(pair.accepted);
    listener = pair.network.listen(kAnyPort, [](std::unique_ptr<Link>) {}).value();
  }
  user.link->wake();
  user.link->finish_sending();
  CHECK_THAT(user.link->peer_name(), Catch::StartsWith("127.0.0.1:"));
  CHECK(listener->address().port != 0);
  user.close();
}
