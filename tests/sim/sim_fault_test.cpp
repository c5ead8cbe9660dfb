#include <catch2/catch.hpp>

#include "tests/sim/two_nodes.hpp"

using namespace ringlet;
using test::TwoNodes;

namespace {

SimOptions seeded(std::uint64_t seed) { return {.seed = seed, .paths = {}}; }
auto seeds() { return Catch::Generators::range<std::uint64_t>(0, 20); }

bool is_start_of(const std::vector<std::byte>& part, const std::vector<std::byte>& whole) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

}  // namespace

TEST_CASE("stop: an orderly kernel flushes what it had accepted and ends the link") {
  TwoNodes pair(seeded(GENERATE(seeds())));
  pair.connect();
  pair.acceptor.send(10'000'000);
  pair.world.stop(pair.two).when([&] { return pair.acceptor.sent_bytes > 50'000; });
  CHECK(pair.world.run_until_idle() == RunEnd::idle);
  CHECK(pair.dialler.ended);
  CHECK(pair.dialler.incoming.size() == pair.acceptor.sent_bytes);
  CHECK(is_start_of(pair.dialler.incoming, pair.acceptor.outgoing));
}

TEST_CASE("stop: a sender to a stopped process is told") {
  const auto kind = GENERATE(StopKind::closes_links, StopKind::resets_links);
  TwoNodes pair(seeded(GENERATE(seeds())));
  pair.connect();
  pair.dialler.send(1'000'000);
  pair.world.stop(pair.two, kind).when([&] { return pair.acceptor.incoming.size() > 50'000; });
  CHECK(pair.world.run_until_idle() == RunEnd::idle);
  REQUIRE(pair.dialler.failure);
  CHECK(pair.dialler.failure->code() == Errc::peer_lost);
  CHECK_FALSE(pair.acceptor.failure);
  CHECK_FALSE(pair.acceptor.ended);
}

TEST_CASE("stop: a machine that falls silent tells nobody") {
  TwoNodes pair(seeded(GENERATE(seeds())));
  pair.connect();
  pair.dialler.send(1'000'000);
  pair.acceptor.send(1'000'000);
  pair.world.stop(pair.two, StopKind::falls_silent).when([&] { return pair.acceptor.incoming.size() > 50'000; });
  CHECK(pair.world.run_until_idle() == RunEnd::idle);
  CHECK_FALSE(pair.dialler.failure);
  CHECK_FALSE(pair.dialler.ended);
  CHECK(pair.dialler.sent_bytes < 1'000'000);
}

TEST_CASE("stop: nothing runs on the node any more, and dials to it end") {
  const auto kind = GENERATE(StopKind::closes_links, StopKind::resets_links, StopKind::falls_silent);
  TwoNodes pair(seeded(GENERATE(seeds())));
  bool ran = false;
  pair.two.loop().after(Duration::seconds(2), [&] { ran = true; });
  pair.world.stop(pair.two, kind).at(Instant{} + Duration::seconds(1));
  pair.world.run_for(Duration::milliseconds(1500));
  pair.two.loop().defer([&] { ran = true; });
  pair.dial(Duration::seconds(3));
  CHECK(pair.world.run_until_idle() == RunEnd::idle);
  CHECK_FALSE(ran);
  REQUIRE(pair.dial_status);
  CHECK(pair.dial_status->code() == (kind == StopKind::falls_silent ? Errc::timed_out : Errc::peer_lost));
}

TEST_CASE("cut: bytes vanish without a word, and go on after the mend") {
  const std::uint64_t seed = GENERATE(seeds());
  TwoNodes pair(seeded(seed));
  pair.connect();
  pair.dialler.send(500'000);
  pair.acceptor.send(500'000);
  pair.world.cut(pair.one, pair.two).when([&] { return pair.acceptor.incoming.size() > 100'000; });
  CHECK(pair.world.run_until_idle() == RunEnd::idle);
  CHECK(pair.acceptor.incoming.size() < 500'000);
  CHECK_FALSE(pair.acceptor.failure);
  CHECK_FALSE(pair.dialler.failure);
  const std::size_t before = pair.acceptor.incoming.size();
  pair.dial(Duration::seconds(1));
  pair.world.run_until_idle();
  CHECK(pair.dial_status->code() == Errc::timed_out);
  CHECK(pair.acceptor.incoming.size() == before);
  pair.world.mend(pair.one, pair.two).now();
  CHECK(pair.world.run_until_idle() == RunEnd::idle);
  CHECK(pair.acceptor.incoming == pair.dialler.outgoing);
  CHECK(pair.dialler.incoming == pair.acceptor.outgoing);
}

TEST_CASE("cut: a close behind it is seen after the mend") {
  TwoNodes pair(seeded(GENERATE(seeds())));
  pair.connect();
  pair.world.cut(pair.one, pair.two).now();
  pair.world.run_until_idle();
  pair.acceptor.link.reset();
  pair.dialler.send(100);
  pair.world.run_until_idle();
  CHECK_FALSE(pair.dialler.ended);
  CHECK_FALSE(pair.dialler.failure);
  pair.world.mend(pair.one, pair.two).now();
  pair.world.run_until_idle();
  CHECK(pair.dialler.failure);
}

TEST_CASE("isolate: a node is alone until it rejoins, also for dials") {
  TwoNodes pair(seeded(GENERATE(seeds())));
  pair.world.isolate(pair.two).now();
  pair.dial(Duration::seconds(30));
  pair.world.rejoin(pair.two).in(Duration::seconds(10));
  REQUIRE(pair.world.run_until([&] { return pair.dial_status.has_value(); }) == RunEnd::done);
  CHECK(pair.dial_status->ok());
  CHECK(pair.world.now() >= Instant{} + Duration::seconds(10));
}

TEST_CASE("freeze: the kernel takes what fits, the process nothing, until it is resumed") {
  TwoNodes pair(seeded(GENERATE(seeds())));
  pair.connect();
  pair.world.freeze(pair.two).now();
  bool ran = false;
  pair.two.loop().after(Duration::milliseconds(5), [&] { ran = true; });
  pair.dialler.send(1'000'000);
  pair.world.run_for(Duration::seconds(20));
  CHECK(pair.acceptor.incoming.empty());
  CHECK(pair.dialler.sent_bytes > 0);
  CHECK(pair.dialler.sent_bytes <= 2 * 65536);
  CHECK_FALSE(ran);
  pair.world.resume(pair.two).now();
  CHECK(pair.world.run_until_idle() == RunEnd::idle);
  CHECK(pair.acceptor.incoming == pair.dialler.outgoing);
  CHECK(ran);
}

TEST_CASE("freeze: connections to a frozen process are made by its kernel and accepted after it resumes") {
  TwoNodes pair(seeded(GENERATE(seeds())));
  pair.world.freeze(pair.two).now();
  pair.dial();
  CHECK(pair.world.run_until_idle() == RunEnd::idle);
  REQUIRE(pair.dial_status);
  CHECK(pair.dial_status->ok());
  CHECK(pair.acceptor.link == nullptr);
  pair.world.resume(pair.two).now();
  CHECK(pair.world.run_until_idle() == RunEnd::idle);
  CHECK(pair.acceptor.link != nullptr);
}

TEST_CASE("stall: one direction stands still for its time, the other goes on") {
  SimOptions options{.seed = 7, .paths = PathOptions::calm()};
  TwoNodes pair(options);
  pair.connect();
  const Instant start = pair.world.now();
  pair.world.stall(pair.one, pair.two, Duration::seconds(5)).now();
  pair.world.run_for({});
  pair.dialler.send(1000);
  pair.acceptor.send(1000);
  REQUIRE(pair.world.run_until([&] { return pair.dialler.incoming.size() == 1000; }) == RunEnd::done);
  CHECK(pair.world.now() < start + Duration::seconds(1));
  REQUIRE(pair.world.run_until([&] { return pair.acceptor.incoming.size() == 1000; }) == RunEnd::done);
  CHECK(pair.world.now() >= start + Duration::seconds(5));
}

TEST_CASE("reset: both ends fail") {
  TwoNodes pair(seeded(GENERATE(seeds())));
  pair.connect();
  pair.dialler.send(1'000'000);
  pair.world.reset(pair.one, pair.two).when([&] { return pair.acceptor.incoming.size() > 50'000; });
  CHECK(pair.world.run_until_idle() == RunEnd::idle);
  CHECK(pair.dialler.failure);
  CHECK(pair.acceptor.failure);
  CHECK(is_start_of(pair.acceptor.incoming, pair.dialler.outgoing));
}

TEST_CASE("reset at a byte: no byte behind it arrives") {
  SimOptions options = seeded(GENERATE(seeds()));
  const std::uint64_t limit = GENERATE(0U, 1U, 1000U, 77'777U);
  TwoNodes pair(options);
  pair.world.path(pair.one, pair.two).reset_at_byte = Range<std::uint64_t>{limit, limit};
  pair.connect();
  pair.dialler.send(200'000);
  pair.acceptor.send(1000);
  CHECK(pair.world.run_until_idle() == RunEnd::idle);
  CHECK(pair.dialler.failure);
  CHECK(pair.acceptor.failure);
  CHECK(pair.acceptor.incoming.size() <= limit);
  // At most the last piece may be dropped unread.
  CHECK(pair.acceptor.incoming.size() + 65536 >= limit);
  CHECK(is_start_of(pair.acceptor.incoming, pair.dialler.outgoing));
}

TEST_CASE("a destroyed end with unread bytes resets the other") {
  TwoNodes pair(seeded(GENERATE(seeds())));
  pair.connect();
  pair.world.freeze(pair.two).now();
  pair.dialler.send(100);
  pair.world.run_until_idle();
  pair.acceptor.link.reset();
  pair.world.run_until_idle();
  CHECK(pair.dialler.failure);
}

TEST_CASE("dials: refused, hanging and late ones, per direction") {
  TwoNodes pair(seeded(GENERATE(seeds())));
  PathOptions& path = pair.world.path(pair.one, pair.two);
  SECTION("refused") {
    path.dial_refused_per_mille = 1000;
    pair.dial();
    pair.world.run_until_idle();
    CHECK(pair.dial_status->code() == Errc::peer_lost);
  }
  SECTION("hanging") {
    path.dial_hangs_per_mille = 1000;
    pair.dial(Duration::seconds(7));
    pair.world.run_until_idle();
    CHECK(pair.dial_status->code() == Errc::timed_out);
    CHECK(pair.world.now() == Instant{} + Duration::seconds(7));
  }
  SECTION("late") {
    path.dial_delay = {Duration::seconds(2), Duration::seconds(3)};
    pair.dial();
    pair.world.run_until([&] { return pair.dial_status.has_value(); });
    CHECK(pair.dial_status->ok());
    CHECK(pair.world.now() >= Instant{} + Duration::seconds(2));
  }
  SECTION("too late: the acceptor sees the link end") {
    path.latency = {Duration::seconds(1), Duration::seconds(1)};
    pair.world.path(pair.two, pair.one).latency = {Duration::seconds(1), Duration::seconds(1)};
    pair.dial(Duration::milliseconds(1500));
    pair.world.run_until_idle();
    CHECK(pair.dial_status->code() == Errc::timed_out);
    CHECK(pair.acceptor.failure);
  }
  SECTION("no such host") {
    pair.one.network().dial({"10.9.9.9", 1}, Duration::seconds(1),
                            [&](Result<std::unique_ptr<Link>> link) { pair.dial_status = link.status(); });
    pair.world.run_until_idle();
    CHECK(pair.dial_status->code() == Errc::peer_lost);
  }
}

TEST_CASE("a world with pending dials, links and tasks is torn down") {
  TwoNodes pair(seeded(GENERATE(seeds())));
  pair.dial();
  pair.world.run_for(Duration::microseconds(GENERATE(0, 50, 100, 200, 500)));
  pair.one.loop().after(Duration::seconds(1), [] {});
  pair.two.loop().defer([] {});
  SUCCEED();
}
