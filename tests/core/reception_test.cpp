#include "core/rendezvous/reception.hpp"

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

struct Hall {
  SimWorld world{7};
  SimNode& node = world.add_node();
  TestAuthenticator authenticator{1, "token"};
  std::deque<ByteUser> links;
  std::deque<ByteUser> others;
  std::vector<std::string> first_bytes;
  std::deque<RawPeer> peers;
  std::unique_ptr<Reception> reception;
  std::unique_ptr<Listener> listener;

  explicit Hall(const ReceptionOptions& options = {}) {
    reception = std::make_unique<Reception>(node.loop(), authenticator, options);
    reception->set_on_link([this](std::unique_ptr<Link> link) { links.emplace_back().use(std::move(link)); });
    listener = std::move(node.network().listen({node.host(), 5000}, reception->acceptor())).value();
  }
  void keep_others() {
    reception->set_on_other_protocol([this](std::unique_ptr<Link> link, const Reception::FirstBytes& first) {
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

/// Hands on the links that it is given.
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
  Hall hall;
  hall.keep_others();
  RawPeer& web = hall.add_peer("GET / HTTP/1.1\r\n\r\n");
  RawPeer& rank = hall.add_rank("token");
  RawPeer& impostor = hall.add_rank("guess");
  hall.world.run_for(Duration::seconds(1));
  REQUIRE(hall.others.size() == 1);
  CHECK(hall.first_bytes[0] == "GET ");
  CHECK(text_of(hall.others[0].incoming) == "/ HTTP/1.1\r\n\r\n");
  CHECK_FALSE(web.ended());
  REQUIRE(hall.links.size() == 1);
  CHECK(rank.linked());
  CHECK_FALSE(impostor.linked());
  CHECK(hall.reception->refusals().count == 1);
  CHECK(hall.reception->pending() == 0);
}

TEST_CASE("other protocols are dropped where nobody wants them, and behind an upgrade") {
  Hall hall;
  RawPeer& web = hall.add_peer("GET / HTTP/1.1\r\n\r\n");
  hall.world.run_for(Duration::seconds(1));
  CHECK(web.ended());
  hall.reception->set_on_other_protocol(
      [&](std::unique_ptr<Link> link, const Reception::FirstBytes&) { hall.reception->receive_upgraded(std::move(link)); });
  RawPeer& twice = hall.add_peer("GET GET GET ");
  hall.world.run_for(Duration::seconds(1));
  CHECK(twice.ended());
  CHECK(hall.reception->pending() == 0);
}

TEST_CASE("who does not go on is dropped at its deadline") {
  Hall hall;
  hall.keep_others();
  for (const std::string text : {"", "R", "RNG", "RNGL", "RNGL\x03", "GET"}) {
    RawPeer& peer = hall.add_peer(text);
    hall.world.run_for(Duration::seconds(9));
    CHECK_FALSE(peer.ended());
    CHECK(hall.reception->pending() == 1);
    hall.world.run_for(Duration::seconds(2));
    CHECK(peer.ended());
    CHECK(hall.reception->pending() == 0);
  }
  CHECK(hall.others.empty());
}

TEST_CASE("one byte at a time does not stretch the deadline") {
  Hall hall;
  RawPeer& peer = hall.add_peer("RNGL");
  for (int second = 0; second < 9; ++second) {
    hall.world.run_for(Duration::seconds(1));
    peer.send(std::vector<std::byte>{second == 0 ? static_cast<std::byte>(kWireVersion) : std::byte{0}});
  }
  CHECK_FALSE(peer.ended());
  hall.world.run_for(Duration::seconds(3));
  CHECK(peer.ended());
}

TEST_CASE("newcomers are bounded, from one host and together") {
  ReceptionOptions options;
  options.max_pending = 6;
  options.max_pending_per_host = 4;
  Hall hall(options);
  SimNode& host = hall.world.add_node();
  std::vector<std::unique_ptr<Link>> idle;
  for (int i = 0; i < 10; ++i) {
    host.network().dial(hall.listener->address(), Duration::seconds(1),
                        [&](Result<std::unique_ptr<Link>> link) { idle.push_back(std::move(link).value()); });
  }
  hall.world.run_for(Duration::seconds(1));
  CHECK(hall.reception->pending() == 4);
  for (int i = 0; i < 5; ++i) hall.add_peer("");
  hall.world.run_for(Duration::seconds(1));
  CHECK(hall.reception->pending() == 6);
  hall.world.run_for(Duration::seconds(20));
  CHECK(hall.reception->pending() == 0);
  RawPeer& rank = hall.add_rank("token");
  hall.world.run_for(Duration::seconds(1));
  CHECK(rank.linked());
}

TEST_CASE("a reception may go at any time") {
  for (int step = 0; step < 100; ++step) {
    Hall hall;
    hall.add_rank("token");
    hall.add_peer("GET / HTTP/1.1\r\n");
    hall.world.run_for(Duration::microseconds(25 * step));
    hall.reception.reset();
    hall.world.run_for(Duration::seconds(1));
  }
}

TEST_CASE("both look for a shortcut where the dialler asks for one; who has none to offer, or was reached by another protocol, drops it") {
  Hall hall;
  CountingShortcut own, theirs;
  const bool upgraded = GENERATE(false, true);
  const bool offered = upgraded || GENERATE(true, false);
  const bool has_one = offered && !upgraded;
  if (offered) hall.reception->set_shortcut(&own);
  if (upgraded) {
    hall.listener.reset();
    const auto upgrade = [&](std::unique_ptr<Link> link) { hall.reception->receive_upgraded(std::move(link)); };
    hall.listener = std::move(hall.node.network().listen({hall.node.host(), 5000}, upgrade)).value();
  }
  SimNode& other = hall.world.add_node();
  Dialler dialler(other.loop(), other.network(), hall.authenticator, &theirs);
  ByteUser user;
  std::optional<Status> outcome;
  dialler.dial(hall.listener->address(), {}, {}, [&](Result<std::unique_ptr<Link>> link) {
    outcome = link.status();
    if (link.ok()) user.use(std::move(link).value());
  });
  hall.world.run_for(Duration::seconds(1));
  REQUIRE(outcome);
  CHECK(outcome->ok() == has_one);
  CHECK(hall.links.size() == (has_one ? 1 : 0));
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
  Hall hall;
  hall.reception->set_expected(expected);
  SimNode& node = hall.world.add_node();
  TestAuthenticator authenticator{2, "token"};
  Dialler dialler(node.loop(), node.network(), authenticator);
  std::optional<bool> dialled;
  ByteUser user;
  dialler.dial(hall.listener->address(), {}, {.kind = asked, .from = 0, .to = 1}, [&](Result<std::unique_ptr<Link>> link) {
    dialled = link.ok();
    if (link.ok()) user.use(std::move(link).value());
  });
  hall.world.run_for(Duration::seconds(1));
  REQUIRE(dialled);
  CHECK(*dialled == (expected == asked));
  CHECK(hall.links.size() == (expected == asked ? 1 : 0));
  CHECK(hall.reception->pending() == 0);
}
