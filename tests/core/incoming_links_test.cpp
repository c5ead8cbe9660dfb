#include "core/rendezvous/incoming_links.hpp"

#include <catch2/catch.hpp>
#include <deque>

#include "core/rendezvous/dialler.hpp"
#include "sim/sim_network.hpp"
#include "tests/core/raw_peer.hpp"
#include "tests/sim/byte_user.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

std::string text_of(ConstBytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

struct Server {
  SimWorld world{7};
  SimNode& node = world.add_node();
  TestAuthenticator authenticator{1, "token"};
  std::deque<ByteUser> links;
  std::deque<ByteUser> others;
  std::vector<std::string> first_bytes;
  std::deque<RawPeer> peers;
  std::unique_ptr<IncomingLinks> incoming;
  std::unique_ptr<Listener> listener;

  explicit Server(const IncomingLinksOptions& options = {}) {
    incoming = std::make_unique<IncomingLinks>(node.loop(), authenticator, options);
    incoming->set_on_link([this](std::unique_ptr<Link> link) { links.emplace_back().use(std::move(link)); });
    listener = std::move(node.network().listen({node.host(), 5000}, incoming->acceptor())).value();
  }
  void keep_others() {
    incoming->set_on_other_protocol([this](std::unique_ptr<Link> link, const IncomingLinks::FirstBytes& first) {
      others.emplace_back().use(std::move(link));
      first_bytes.push_back(text_of(first));
    });
  }
  RawPeer& add_peer(const std::string& text) {
    RawPeer& peer = peers.emplace_back(world);
    peer.dial_until_linked(listener->address(), [&peer, text] { peer.send(std::as_bytes(std::span(text))); });
    return peer;
  }
  RawPeer& add_rank(const std::string& token) {
    RawPeer& peer = peers.emplace_back(world);
    peer.use_token(token);
    peer.dial_until_linked(listener->address(), [] {});
    return peer;
  }
};

/// A shortcut that notes the sides of the links that it is given, and hands them on.
class CountingShortcut final : public Shortcut {
 public:
  std::vector<LinkSide> sides;
  bool offers(const Link&) const override { return true; }
  void take(std::unique_ptr<Link> link, LinkSide side, Taken taken) override {
    sides.push_back(side);
    taken(std::move(link));
  }
};

}  // namespace

TEST_CASE("the reception tells who speaks what") {
  Server server;
  server.keep_others();
  RawPeer& web = server.add_peer("GET / HTTP/1.1\r\n\r\n");
  RawPeer& rank = server.add_rank("token");
  RawPeer& impostor = server.add_rank("guess");
  server.world.run_for(Duration::seconds(1));
  REQUIRE(server.others.size() == 1);
  CHECK(server.first_bytes[0] == "GET ");
  CHECK(text_of(server.others[0].incoming) == "/ HTTP/1.1\r\n\r\n");
  CHECK_FALSE(web.ended());
  REQUIRE(server.links.size() == 1);
  CHECK(rank.linked());
  CHECK_FALSE(impostor.linked());
  CHECK(server.incoming->refusals().count == 1);
  CHECK(server.incoming->pending() == 0);
}

TEST_CASE("other protocols are dropped where nobody wants them, and behind an upgrade") {
  Server server;
  RawPeer& web = server.add_peer("GET / HTTP/1.1\r\n\r\n");
  server.world.run_for(Duration::seconds(1));
  CHECK(web.ended());
  server.incoming->set_on_other_protocol(
      [&](std::unique_ptr<Link> link, const IncomingLinks::FirstBytes&) { server.incoming->receive_upgraded(std::move(link)); });
  RawPeer& twice = server.add_peer("GET GET GET ");
  server.world.run_for(Duration::seconds(1));
  CHECK(twice.ended());
  CHECK(server.incoming->pending() == 0);
}

TEST_CASE("who does not go on is dropped at its deadline") {
  Server server;
  server.keep_others();
  for (const std::string text : {"", "R", "RNG", "RNGL", "RNGL\x03", "GET"}) {
    RawPeer& peer = server.add_peer(text);
    server.world.run_for(Duration::seconds(9));
    CHECK_FALSE(peer.ended());
    CHECK(server.incoming->pending() == 1);
    server.world.run_for(Duration::seconds(2));
    CHECK(peer.ended());
    CHECK(server.incoming->pending() == 0);
  }
  CHECK(server.others.empty());
}

TEST_CASE("one byte at a time does not stretch the deadline") {
  Server server;
  RawPeer& peer = server.add_peer("RNGL");
  for (int second = 0; second < 9; ++second) {
    server.world.run_for(Duration::seconds(1));
    peer.send(std::vector<std::byte>{second == 0 ? static_cast<std::byte>(kWireVersion) : std::byte{0}});
  }
  CHECK_FALSE(peer.ended());
  server.world.run_for(Duration::seconds(3));
  CHECK(peer.ended());
}

TEST_CASE("newcomers are bounded, from one host and together") {
  IncomingLinksOptions options;
  options.max_pending = 6;
  options.max_pending_per_host = 4;
  Server server(options);
  SimNode& host = server.world.add_node();
  std::vector<std::unique_ptr<Link>> idle;
  for (int i = 0; i < 10; ++i) {
    host.network().dial(server.listener->address(), Duration::seconds(1),
                        [&](Result<std::unique_ptr<Link>> link) { idle.push_back(std::move(link).value()); });
  }
  server.world.run_for(Duration::seconds(1));
  CHECK(server.incoming->pending() == 4);
  std::vector<RawPeer*> singles;
  for (int i = 0; i < 5; ++i) singles.push_back(&server.add_peer(""));
  server.world.run_for(Duration::seconds(1));
  CHECK(server.incoming->pending() == 6);
  for (const RawPeer* single : singles) CHECK_FALSE(single->ended());
  server.world.run_for(Duration::seconds(20));
  CHECK(server.incoming->pending() == 0);
  RawPeer& rank = server.add_rank("token");
  server.world.run_for(Duration::seconds(1));
  CHECK(rank.linked());
}

TEST_CASE("links that prove nothing keep nobody out, from other hosts or the same") {
  IncomingLinksOptions options;
  options.max_pending = 12;
  options.max_pending_per_host = 8;
  Server server(options);
  const int hosts = GENERATE(1, 2, 10);
  std::vector<std::unique_ptr<Link>> idle;
  for (int i = 0; i < hosts; ++i) {
    SimNode& host = server.world.add_node();
    for (int k = 0; k < 40; ++k)
      host.loop().after(Duration::milliseconds(100 * k), [&server, &host, &idle] {
        host.network().dial(server.listener->address(), Duration::seconds(1), [&](Result<std::unique_ptr<Link>> link) {
          if (link.ok()) idle.push_back(std::move(link).value());
        });
      });
  }
  server.world.run_for(Duration::seconds(2));
  CHECK(server.incoming->pending() >= 8);
  for (int i = 0; i < 3; ++i) {
    RawPeer& rank = server.add_rank("token");
    server.world.run_for(Duration::milliseconds(300));
    CHECK(rank.linked());
  }
  CHECK(server.links.size() == 3);
}

TEST_CASE("a host that has proved itself goes before those that have not") {
  IncomingLinksOptions options;
  options.max_pending = 4;
  Server server(options);
  RawPeer& member = server.add_rank("token");
  server.world.run_for(Duration::seconds(1));
  REQUIRE(member.linked());
  std::vector<std::unique_ptr<Link>> again;
  const auto dial_again = [&] {
    member.node().network().dial(server.listener->address(), Duration::seconds(1),
                                 [&](Result<std::unique_ptr<Link>> link) { again.push_back(std::move(link).value()); });
    server.world.run_for(Duration::seconds(1));
  };
  dial_again();
  dial_again();
  std::vector<RawPeer*> strangers;
  for (int i = 0; i < 8; ++i) strangers.push_back(&server.add_peer(""));
  server.world.run_for(Duration::seconds(1));
  CHECK(server.incoming->pending() == 4);
  CHECK(std::count_if(strangers.begin(), strangers.end(), [](const RawPeer* peer) { return !peer->ended(); }) == 2);
  dial_again();
  dial_again();
  CHECK(std::count_if(strangers.begin(), strangers.end(), [](const RawPeer* peer) { return !peer->ended(); }) == 0);
  server.add_peer("");
  server.world.run_for(Duration::seconds(1));
  CHECK(server.incoming->pending() == 4);
}

TEST_CASE("a reception may go at any time") {
  for (int step = 0; step < 100; ++step) {
    Server server;
    server.add_rank("token");
    server.add_peer("GET / HTTP/1.1\r\n");
    server.world.run_for(Duration::microseconds(25 * step));
    server.incoming.reset();
    server.world.run_for(Duration::seconds(1));
  }
}

TEST_CASE("both look for a shortcut where the dialler asks for one; who has none to offer, or was reached by another protocol, drops it") {
  Server server;
  CountingShortcut own, theirs;
  const bool upgraded = GENERATE(false, true);
  const bool offered = upgraded || GENERATE(true, false);
  const bool has_one = offered && !upgraded;
  if (offered) server.incoming->set_shortcut(&own);
  if (upgraded) {
    server.listener.reset();
    const auto upgrade = [&](std::unique_ptr<Link> link) { server.incoming->receive_upgraded(std::move(link)); };
    server.listener = std::move(server.node.network().listen({server.node.host(), 5000}, upgrade)).value();
  }
  SimNode& other = server.world.add_node();
  Dialler dialler(other.loop(), other.network(), server.authenticator, &theirs);
  ByteUser user;
  std::optional<Status> outcome;
  dialler.dial(server.listener->address(), {}, {}, [&](Result<std::unique_ptr<Link>> link) {
    outcome = link.status();
    if (link.ok()) user.use(std::move(link).value());
  });
  server.world.run_for(Duration::seconds(1));
  REQUIRE(outcome);
  CHECK(outcome->ok() == has_one);
  CHECK(server.links.size() == (has_one ? 1 : 0));
  CHECK(own.sides == (has_one ? std::vector{LinkSide::acceptor} : std::vector<LinkSide>{}));
  CHECK(theirs.sides == (has_one ? std::vector{LinkSide::dialler} : std::vector<LinkSide>{}));
}

TEST_CASE("only what is expected may be asked for") {
  const auto [expected, asked] = GENERATE(table<LinkRequest::Kind, LinkRequest::Kind>({
      {LinkRequest::Kind::link, LinkRequest::Kind::link},
      {LinkRequest::Kind::link, LinkRequest::Kind::agent},
      {LinkRequest::Kind::agent, LinkRequest::Kind::agent},
      {LinkRequest::Kind::agent, LinkRequest::Kind::link},
      {LinkRequest::Kind::agent, LinkRequest::Kind::relay},
  }));
  Server server;
  server.incoming->set_expected(expected);
  SimNode& node = server.world.add_node();
  TestAuthenticator authenticator{2, "token"};
  Dialler dialler(node.loop(), node.network(), authenticator);
  std::optional<bool> dialled;
  ByteUser user;
  dialler.dial(server.listener->address(), {}, {.kind = asked, .from = 0, .to = 1}, [&](Result<std::unique_ptr<Link>> link) {
    dialled = link.ok();
    if (link.ok()) user.use(std::move(link).value());
  });
  server.world.run_for(Duration::seconds(1));
  REQUIRE(dialled);
  CHECK(*dialled == (expected == asked));
  CHECK(server.links.size() == (expected == asked ? 1 : 0));
  CHECK(server.incoming->pending() == 0);
}
