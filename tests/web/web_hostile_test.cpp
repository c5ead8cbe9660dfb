#include <random>

#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/web/attacks.hpp"
#include "tests/web/web_sim.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

web::WebOptions strict() {
  web::WebOptions options;
  options.web_socket.max_message_bytes = 1000;
  return options;
}

}  // namespace

TEST_CASE("a client that breaks RFC 6455 gets the code and is dropped") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 4));
  for (const Attack& attack : attacks()) {
    CAPTURE(seed, attack.what);
    web::WebOptions options = strict();
    if (attack.what == "long text") options.web_socket.max_message_bytes = 100'000;
    WebSim sim(seed, options, seed == 0 ? PathOptions::calm() : PathOptions{});
    const auto [client, server] = sim.open_socket();
    WebSim::say(client, frame(kBinary, "before") + attack.bytes + frame(kBinary, "behind"));
    REQUIRE(sim.world.run_until([&, c = &client] { return c->ended || c->failure; }) == RunEnd::done);
    CHECK(WebSim::heard(client).find(server_frame(kClose, close_payload(attack.code))) != std::string::npos);
    client.link.reset();
    CHECK(sim.world.run_until_idle() == RunEnd::idle);
    REQUIRE(server.failure);
    CHECK(server.failure->code() == Errc::protocol_error);
    CHECK_THAT(server.failure->text(), Contains("broke the WebSocket protocol: it sent "));
    CHECK(text_of(server.incoming).find("before") == 0);
    CHECK(text_of(server.incoming).find("behind") == std::string::npos);
  }
}

TEST_CASE("a client that breaks RFC 6455 and stays is dropped after a second") {
  WebSim sim;
  const auto [client, server] = sim.open_socket();
  const auto begin = sim.world.now();
  WebSim::say(client, frame(0xf2, "x"));
  REQUIRE(sim.world.run_until([s = &server] { return s->failure.has_value(); }) == RunEnd::done);
  CHECK((sim.world.now() - begin) < Duration::milliseconds(1100));
}

TEST_CASE("pings are answered between messages, and not without end") {
  WebSim sim;
  const auto [client, server] = sim.open_socket();
  WebSim::say(client, frame(0x02, "ab") + frame(kPing, "are you there") + frame(kPong, "unasked") + frame(0x80, "cd") + frame(kPing, ""));
  REQUIRE(sim.hears(client, server_frame(kPong, "are you there") + server_frame(kPong, "")));
  REQUIRE(sim.world.run_until([s = &server] { return text_of(s->incoming) == "abcd"; }) == RunEnd::done);

  // This client does not read the answers.
  client.link.reset();
  std::string pings;
  for (int count = 0; count < 100'000; ++count) pings += frame(kPing, std::string(100, 'p'));
  PathOptions narrow = PathOptions::calm();
  narrow.receive_buffer_bytes = narrow.send_buffer_bytes = {4096, 4096};
  WebSim other(1, {}, narrow);
  const auto [deaf, victim] = other.open_socket();
  other.world.stall(other.server_node, other.client_node, Duration::seconds(1000)).now();
  WebSim::say(deaf, pings);
  REQUIRE(other.world.run_until([v = &victim] { return v->failure.has_value(); }) == RunEnd::done);
  CHECK_THAT(victim.failure->text(), Contains("more pings than it takes answers to"));
}

TEST_CASE("both sides can end a WebSocket in order") {
  const bool server_first = GENERATE(false, true);
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 10));
  CAPTURE(server_first, seed);
  WebSim sim(seed, {}, PathOptions{});
  const auto [client, server] = sim.open_socket();
  server.send(50'000);
  if (server_first) server.link->finish_sending();
  WebSim::say(client, frame(kBinary, "last words") + frame(kClose, close_payload(4001, "gr\xc3\xbc\xc3\x9f")));
  REQUIRE(sim.world.run_until([s = &server] { return s->ended; }) == RunEnd::done);
  CHECK(text_of(server.incoming) == "last words");
  server.link->finish_sending();
  REQUIRE(sim.world.run_until([c = &client] { return c->ended; }) == RunEnd::done);
  const std::string last = server_frame(kClose, close_payload(server_first ? 1000 : 4001));
  const std::string heard = WebSim::heard(client);
  CHECK(heard.size() > 50'000);
  if (!server_first) CHECK(heard.substr(heard.size() - last.size()) == last);
  CHECK_FALSE(server.failure);
  client.link.reset();
  CHECK(sim.world.run_until_idle() == RunEnd::idle);
}

TEST_CASE("a connection that ends in the middle of a message is a failure, between messages an end") {
  WebSim sim;
  const auto [client, server] = sim.open_socket();
  WebSim::say(client, frame(kBinary, "whole"));
  client.link->finish_sending();
  REQUIRE(sim.world.run_until([s = &server] { return s->ended || s->failure; }) == RunEnd::done);
  CHECK(server.ended);
  for (const std::string& cut : {frame(kBinary, "half").substr(0, 8), std::string("\x82"), frame(0x02, "a fragment")}) {
    const auto [other, victim] = sim.open_socket();
    WebSim::say(other, cut);
    other.link->finish_sending();
    REQUIRE(sim.world.run_until([s = &victim] { return s->ended || s->failure; }) == RunEnd::done);
    REQUIRE(victim.failure);
    CHECK_THAT(victim.failure->text(), Contains("in the middle of a message"));
  }
}

TEST_CASE("a client whose network goes away is given up") {
  WebSim sim;
  ByteUser& client = sim.connect();
  WebSim::say(client, upgrade_request().substr(0, 100));
  sim.world.isolate(sim.client_node).in(Duration::milliseconds(10));
  sim.world.run_for(Duration::seconds(11));
  CHECK(sim.front.connection_count() == 0);
  CHECK(sim.web_sockets.empty());
}

TEST_CASE("no mutation of a session hangs or breaks the server") {
  Campaign campaign("a web client's bytes are altered, cut or doubled");
  for (const std::uint64_t seed : seeds(400)) {
    CAPTURE(seed);
    campaign.begin();
    std::mt19937_64 random(seed);
    std::string session = "GET / HTTP/1.1\r\nHost: ring:1\r\nAccept-Encoding: gzip\r\n\r\n" + upgrade_request("Origin: http://ring:1\r\n");
    const std::size_t head = session.size();
    for (int count = 0; count < 6; ++count) {
      session += frame(0x02, std::string(random() % 300, 'a')) + frame(kPing, "p");
      session += frame(0x80, std::string(random() % 700, 'b'));
      session += frame(kBinary, std::string(random() % 70'000, 'c'));
    }
    session += frame(kClose, close_payload(1000, "bye"));
    for (std::uint64_t count = random() % 4; count-- > 0;) {
      // Half of the changes are in the requests, the others anywhere.
      const std::size_t within = random() % 2 == 0 ? head : session.size();
      const std::size_t at = random() % within;
      switch (random() % 4) {
        case 0:
          session[at] = static_cast<char>(random());
          break;
        case 1:
          session[at] = static_cast<char>(session[at] ^ (1 << random() % 8));
          break;
        case 2:
          session.erase(at, random() % 20);
          break;
        default: {
          const std::size_t from = random() % session.size();
          session.insert(at, session.substr(from, random() % 20));
          break;
        }
      }
    }
    if (random() % 3 == 0) session.resize(random() % session.size());
    WebSim sim(seed, {}, PathOptions{});
    ByteUser& client = sim.connect();
    // The client sends its frames after the upgrade, as RFC 6455 demands. What was made wrong is sent all the same.
    const std::size_t first = std::min(session.size(), head);
    WebSim::say(client, std::string_view(session).substr(0, first));
    sim.world.run_for(Duration::seconds(1));
    if (client.link && !client.failure) {
      WebSim::say(client, std::string_view(session).substr(first));
      client.link->finish_sending();
    }
    const auto over = [&] {
      bool done = sim.front.connection_count() == 0;
      for (const ByteUser& user : sim.web_sockets) done = done && (user.ended || user.failure);
      return done;
    };
    REQUIRE(sim.world.run_until(over, {.events = 5'000'000, .time = Duration::seconds(100)}) == RunEnd::done);
    REQUIRE(sim.web_sockets.size() <= 1);
    campaign.goes_well();
  }
}
