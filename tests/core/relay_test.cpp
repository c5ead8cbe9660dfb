#include "core/rendezvous/relay.hpp"

#include <catch2/catch.hpp>
#include <deque>

#include "core/rendezvous/dialler.hpp"
#include "core/rendezvous/incoming_links.hpp"
#include "sim/sim_network.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/test_authenticator.hpp"
#include "tests/sim/byte_user.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// Three guests of a world of 2 + 3 ranks, and native rank 0 or 1, which may relay between them.
struct Crossing {
  SimWorld world;
  SimNode& node = world.add_node();
  TestAuthenticator authenticator{1, "token"};
  std::unique_ptr<IncomingLinks> incoming;
  std::unique_ptr<Listener> listener;
  struct Guest {
    SimNode* node = nullptr;
    std::unique_ptr<TestAuthenticator> authenticator;
    std::unique_ptr<Dialler> dialler;
    ByteUser user;
    std::optional<Status> dialled;
  };
  std::deque<Guest> guests;

  Crossing(std::uint64_t seed, const PathOptions& paths, int rank) : world({.seed = seed, .paths = paths}) {
    incoming = std::make_unique<IncomingLinks>(node.loop(), authenticator);
    WorldOptions options;
    options.rank = rank;
    options.size = 5;
    options.guests = 3;
    incoming->relay_for(options);
    listener = std::move(node.network().listen({node.host(), 5000}, incoming->acceptor())).value();
  }
  Guest& dial(std::uint32_t from, std::uint32_t to, std::uint64_t world_id = 9) {
    Guest& guest = guests.emplace_back();
    guest.node = &world.add_node();
    guest.authenticator = std::make_unique<TestAuthenticator>(guests.size() + 10, "token");
    guest.dialler = std::make_unique<Dialler>(guest.node->loop(), guest.node->network(), *guest.authenticator);
    guest.dialler->dial(listener->address(), {.handshake = Duration::seconds(100)},
                        {.kind = LinkRequest::Kind::relay, .from = from, .to = to, .world_id = world_id},
                        [&guest](Result<std::unique_ptr<Link>> link) {
                          guest.dialled = link.status();
                          if (link.ok()) guest.user.use(std::move(link).value());
                        });
    return guest;
  }
};

}  // namespace

TEST_CASE("two guests are joined by the rank between them, and bytes pass both ways") {
  for (const auto seed : seeds(40)) {
    CAPTURE(seed);
    Crossing crossing(seed, PathOptions{}, 1);
    auto& one = crossing.dial(2, 3);
    crossing.world.run_for(Duration::seconds(1));
    CHECK_FALSE(one.dialled);
    CHECK(crossing.incoming->pending() == 0);
    auto& other = crossing.dial(3, 2);
    REQUIRE(crossing.world.run_until([&] { return one.dialled && other.dialled; }, {.time = Duration::seconds(5)}) == RunEnd::done);
    REQUIRE(one.dialled->ok());
    REQUIRE(other.dialled->ok());
    one.user.send(700'000);
    other.user.send(300'000);
    REQUIRE(crossing.world.run_until([&] { return other.user.incoming.size() == 700'000 && one.user.incoming.size() == 300'000; }) ==
            RunEnd::done);
    CHECK(one.user.incoming == other.user.outgoing);
    CHECK(other.user.incoming == one.user.outgoing);
    // Each direction ends independently of the other.
    one.user.link->finish_sending();
    REQUIRE(crossing.world.run_until([&] { return other.user.ended; }) == RunEnd::done);
    other.user.send(1000);
    REQUIRE(crossing.world.run_until([&] { return one.user.incoming.size() == 301'000; }) == RunEnd::done);
    CHECK(crossing.incoming->relays() == 1);
    other.user.link->finish_sending();
    REQUIRE(crossing.world.run_until([&] { return one.user.ended && crossing.incoming->relays() == 0; }) == RunEnd::done);
    CHECK_FALSE(one.user.failure);
    CHECK_FALSE(other.user.failure);
  }
}

TEST_CASE("who does not read holds the sender up, and no more than the buffer waits") {
  Crossing crossing(1, PathOptions::calm(), 1);
  auto& one = crossing.dial(2, 3);
  auto& other = crossing.dial(3, 2);
  REQUIRE(crossing.world.run_until([&] { return one.dialled && other.dialled; }) == RunEnd::done);
  crossing.world.freeze(*other.node).now();
  one.user.send(5'000'000);
  crossing.world.run_for(Duration::seconds(20));
  // There are buffers of 64 KiB at each end of both links, and the relay's own buffer.
  CHECK(one.user.sent_bytes <= Relay::kBufferBytes + 4 * 65'536);
  CHECK(one.user.sent_bytes >= Relay::kBufferBytes);
  crossing.world.resume(*other.node).now();
  REQUIRE(crossing.world.run_until([&] { return other.user.incoming.size() == 5'000'000; }) == RunEnd::done);
  CHECK(other.user.incoming == one.user.outgoing);
}

TEST_CASE("where one side breaks, the other gets what had come and then the end") {
  for (const auto seed : seeds(40)) {
    CAPTURE(seed);
    Crossing crossing(seed, PathOptions{}, 1);
    auto& one = crossing.dial(2, 3);
    auto& other = crossing.dial(3, 2);
    REQUIRE(crossing.world.run_until([&] { return one.dialled && other.dialled; }) == RunEnd::done);
    one.user.send(2000);
    other.user.send(2'000'000);
    crossing.world.run_for(Duration::milliseconds(static_cast<std::int64_t>(seed)));
    crossing.world.stop(*one.node, seed % 2 == 0 ? StopKind::closes_links : StopKind::resets_links).now();
    REQUIRE(crossing.world.run_until([&] { return other.user.ended || other.user.failure; }, {.time = Duration::seconds(20)}) ==
            RunEnd::done);
    other.user.link.reset();
    crossing.world.run_for(Duration::seconds(5));
    CHECK(crossing.incoming->relays() == 0);
  }
}

TEST_CASE("only the pairs of a relay are joined") {
  Crossing crossing(1, PathOptions{}, 1);
  const std::pair<std::uint32_t, std::uint32_t> wrong[] = {{2, 4}, {1, 2}, {2, 2}, {2, 5}, {0, 3}, {2, 0xffffffffu}};
  for (const auto& [from, to] : wrong) {
    CAPTURE(from, to);
    auto& guest = crossing.dial(from, to);
    auto& counterpart = crossing.dial(to, from);
    crossing.world.run_for(Duration::seconds(2));
    REQUIRE(guest.dialled);
    REQUIRE(counterpart.dialled);
    CHECK(guest.dialled->code() == Errc::peer_lost);
  }
  // Two guests that dial each other in different worlds are not joined.
  auto& one = crossing.dial(2, 3, 1);
  auto& other = crossing.dial(3, 2, 2);
  crossing.world.run_for(Duration::seconds(2));
  CHECK_FALSE(one.dialled);
  CHECK_FALSE(other.dialled);
}

TEST_CASE("a guest that dials again takes its own place, and one that waits may go") {
  Crossing crossing(1, PathOptions{}, 1);
  auto& first = crossing.dial(2, 3);
  crossing.world.run_for(Duration::seconds(1));
  auto& again = crossing.dial(2, 3);
  crossing.world.run_for(Duration::seconds(1));
  REQUIRE(first.dialled);
  CHECK_FALSE(first.dialled->ok());
  crossing.world.stop(*again.node).now();
  crossing.world.run_for(Duration::seconds(1));
  auto& last = crossing.dial(2, 3);
  auto& other = crossing.dial(3, 2);
  crossing.world.run_for(Duration::seconds(1));
  CHECK(last.dialled->ok());
  CHECK(other.dialled->ok());
}

TEST_CASE("a reception with relays may go at any time") {
  for (int step = 0; step < 80; ++step) {
    Crossing crossing(static_cast<std::uint64_t>(step), PathOptions{}, 1);
    auto& one = crossing.dial(2, 3);
    auto& other = crossing.dial(3, 2);
    crossing.world.run_for(Duration::microseconds(40 * step));
    if (one.user.link) one.user.send(1000);
    crossing.world.run_for(Duration::microseconds(100));
    crossing.incoming.reset();
    crossing.world.run_for(Duration::seconds(1));
    CHECK((!other.user.link || other.user.ended || other.user.failure));
  }
}
