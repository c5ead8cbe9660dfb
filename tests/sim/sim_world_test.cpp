#include <catch2/catch.hpp>

#include "tests/sim/two_nodes.hpp"

using namespace ringlet;
using test::ByteUser;
using test::TwoNodes;

namespace {

std::uint64_t trace_of_exchange(std::uint64_t seed) {
  TwoNodes pair({.seed = seed, .paths = {}});
  pair.connect();
  pair.dialler.send(20'000);
  pair.acceptor.send(30'000);
  pair.dialler.link->finish_sending();
  pair.acceptor.link->finish_sending();
  REQUIRE(pair.world.run_until_idle() == RunEnd::idle);
  REQUIRE(pair.acceptor.incoming == pair.dialler.outgoing);
  REQUIRE(pair.dialler.incoming == pair.acceptor.outgoing);
  CHECK(pair.dialler.ended);
  CHECK(pair.acceptor.ended);
  return pair.world.trace_hash();
}

}  // namespace

TEST_CASE("the same seed gives the same run, another seed another") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 50));
  CAPTURE(seed);
  const std::uint64_t trace = trace_of_exchange(seed);
  CHECK(trace == trace_of_exchange(seed));
  CHECK(trace != trace_of_exchange(seed + 1));
}

TEST_CASE("the content of what is delivered is in the trace") {
  const auto trace_of = [](std::byte content) {
    TwoNodes pair({.seed = 3, .paths = {}});
    pair.connect();
    pair.dialler.outgoing.assign(100, content);
    pair.dialler.link->wake();
    pair.world.run_until_idle();
    return pair.world.trace_hash();
  };
  CHECK(trace_of(std::byte{1}) == trace_of(std::byte{1}));
  CHECK(trace_of(std::byte{1}) != trace_of(std::byte{2}));
}

TEST_CASE("virtual time passes by itself and cancelled timers do not move it") {
  SimWorld world(1);
  EventLoop& loop = world.add_node().loop();
  std::vector<int> order;
  loop.after(Duration::seconds(5), [&] { order.push_back(5); });
  loop.after(Duration::seconds(1), [&] { order.push_back(1); });
  const TimerId cancelled = loop.after(Duration::seconds(900), [&] { order.push_back(900); });
  loop.cancel(cancelled);
  CHECK(world.run_until_idle() == RunEnd::idle);
  CHECK(order == std::vector<int>{1, 5});
  CHECK(world.now() == Instant{} + Duration::seconds(5));
}

TEST_CASE("a run says which limit it met") {
  SimWorld world(1);
  EventLoop& loop = world.add_node().loop();
  std::function<void()> tick = [&] { loop.after(Duration::seconds(1), tick); };
  tick();
  CHECK(world.run_until_idle({.events = 10}) == RunEnd::event_limit);
  CHECK(world.event_count() == 10);
  CHECK(world.run_until_idle({.time = Duration::seconds(7)}) == RunEnd::time_limit);
  CHECK(world.event_count() == 17);
  CHECK(world.run_until([&] { return world.event_count() == 20; }) == RunEnd::done);
  const Instant before = world.now();
  world.run_for(Duration::milliseconds(2500));
  CHECK(world.now() == before + Duration::milliseconds(2500));
  CHECK(world.event_count() == 22);
}

TEST_CASE("many cancelled timers take no lasting place") {
  SimWorld world(1);
  EventLoop& loop = world.add_node().loop();
  int runs = 0;
  for (int round = 0; round < 100'000; ++round) loop.cancel(loop.after(Duration::seconds(30), [&] { ++runs; }));
  loop.after(Duration::seconds(31), [&] { runs += 10; });
  world.run_until_idle();
  CHECK(runs == 10);
}

TEST_CASE("the send buffer is a bound: the sender is asked again only when there is room") {
  SimOptions options{.seed = 9, .paths = PathOptions::calm()};
  options.paths.send_buffer_bytes = {2048, 2048};
  options.paths.receive_buffer_bytes = {1024, 1024};
  TwoNodes pair(options);
  pair.connect();
  pair.world.freeze(pair.two).now();
  pair.dialler.send(100'000);
  CHECK(pair.world.run_until_idle() == RunEnd::idle);
  CHECK(pair.dialler.sent_bytes == 3072);
  pair.world.resume(pair.two).now();
  CHECK(pair.world.run_until_idle() == RunEnd::idle);
  CHECK(pair.acceptor.incoming == pair.dialler.outgoing);
}

TEST_CASE("buffers of one byte are enough") {
  SimOptions options{.seed = 11, .paths = {}};
  options.paths.send_buffer_bytes = options.paths.receive_buffer_bytes = {1, 1};
  TwoNodes pair(options);
  pair.connect();
  pair.dialler.send(3000);
  pair.dialler.link->finish_sending();
  CHECK(pair.world.run_until_idle() == RunEnd::idle);
  CHECK(pair.acceptor.incoming == pair.dialler.outgoing);
  CHECK(pair.acceptor.ended);
}

TEST_CASE("bandwidth and latency take the time they should") {
  SimOptions options{.seed = 2, .paths = PathOptions::calm()};
  options.paths.latency = {Duration::milliseconds(10), Duration::milliseconds(10)};
  options.paths.bytes_per_second = {1'000'000, 1'000'000};
  options.loop_delay = {};
  TwoNodes pair(options);
  pair.connect();
  const Instant start = pair.world.now();
  pair.dialler.send(50'000);
  pair.world.run_until([&] { return pair.acceptor.incoming.size() == 50'000; });
  CHECK(pair.world.now() - start == Duration::milliseconds(60));
}

TEST_CASE("links of a node share its port, each way by itself") {
  SimOptions options{.seed = 2, .paths = PathOptions::calm()};
  options.paths.latency = {};
  options.loop_delay = {};
  TwoNodes pair(options);
  pair.connect();
  ByteUser second_dialler, second_acceptor;
  auto opened = pair.two.network().listen({pair.two.host(), 0}, [&](std::unique_ptr<Link> link) { second_acceptor.use(std::move(link)); });
  const std::unique_ptr<Listener> listener = std::move(opened).value();
  SimNode& third = pair.world.add_node();
  third.network().dial(listener->address(), Duration::seconds(1),
                       [&](Result<std::unique_ptr<Link>> link) { second_dialler.use(std::move(link).value()); });
  pair.world.run_until([&] { return second_dialler.link && second_acceptor.link; });
  pair.world.limit_port(pair.two, 1'000'000);
  const Instant start = pair.world.now();
  for (ByteUser* sender : {&pair.dialler, &second_dialler, &pair.acceptor}) sender->send(50'000);
  const auto all_there = [&] {
    return pair.acceptor.incoming.size() == 50'000 && second_acceptor.incoming.size() == 50'000 && pair.dialler.incoming.size() == 50'000;
  };
  REQUIRE(pair.world.run_until(all_there) == RunEnd::done);
  CHECK((pair.world.now() - start).whole_milliseconds() == 100);
}

TEST_CASE("bytes come in many sizes on a link that splits") {
  TwoNodes pair({.seed = 4, .paths = [] {
                   PathOptions paths;
                   paths.split_per_mille = {300, 300};
                   return paths;
                 }()});
  pair.connect();
  pair.dialler.send(100'000);
  pair.world.run_until_idle();
  std::vector<std::size_t> sizes = pair.acceptor.pieces;
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  CHECK(sizes.size() > 20);
  CHECK(sizes.front() < 10);
  CHECK(sizes.back() > 1000);
  CHECK(pair.acceptor.incoming == pair.dialler.outgoing);
}
