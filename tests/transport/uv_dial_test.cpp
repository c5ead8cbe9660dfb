#include <optional>

#include "tests/transport/loopback.hpp"
#include "tests/transport/raw_socket.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// Dials, and returns the error with which that ended.
Status dial_and_fail(const Address& address, Duration timeout) {
  UvLoop loop;
  UvNetwork network(loop);
  Status ended;
  int calls = 0;
  network.dial(address, timeout, [&](Result<std::unique_ptr<Link>> link) {
    ++calls;
    ended = link.status();
  });
  CHECK(calls == 0);
  CHECK(drive(loop, [&] { return calls > 0; }));
  settle(loop);
  CHECK(calls == 1);
  return ended;
}

/// A port that neither accepts nor refuses another connection, since its queue is full.
struct SilentPort {
  RawSocket listener = RawSocket::listening(0);
  RawSocket queued = RawSocket::connected_to(listener.port());
};

std::uint16_t free_port() { return RawSocket::listening(1).port(); }

}  // namespace

TEST_CASE("uv dial: localhost needs no name service, and falls back from one address to the next") {
  const auto host = GENERATE(as<std::string>{}, "127.0.0.1", "::1");
  UvLoop loop;
  UvNetwork network(loop);
  std::unique_ptr<Link> accepted;
  auto listener = network.listen({host, 0}, [&](std::unique_ptr<Link> link) { accepted = std::move(link); });
  REQUIRE(listener.ok());
  bool dialled = false;
  network.dial({"localhost", listener.value()->address().port}, kPatience, [&](Result<std::unique_ptr<Link>> link) {
    CHECK(link.ok());
    dialled = true;
  });
  CHECK(drive(loop, [&] { return dialled && accepted; }));
}

TEST_CASE("uv dial: a refused dial names the address and the reason") {
  const auto port = std::to_string(free_port());
  const auto status = dial_and_fail({"127.0.0.1", static_cast<std::uint16_t>(std::stoi(port))}, kPatience);
  CHECK(status.code() == Errc::peer_lost);
  CHECK(status.text() == "cannot connect to 127.0.0.1:" + port + ": connection refused; is the other side listening there?");
}

TEST_CASE("uv dial: a look tells a refusal from a listener, from silence and from a host that does not exist") {
  UvLoop loop;
  UvNetwork network(loop);
  const SilentPort silent;
  auto listener = network.listen({"127.0.0.1", 0}, [](std::unique_ptr<Link>) {});
  REQUIRE(listener.ok());
  const auto refused = [&](const Address& address) {
    std::optional<bool> known;
    network.look(address, Duration::milliseconds(100), [&](bool is_refused) { known = is_refused; });
    CHECK_FALSE(known);
    CHECK(drive(loop, [&] { return known.has_value(); }));
    return known.value();
  };
  CHECK(refused({"127.0.0.1", free_port()}));
  CHECK(refused({"localhost", free_port()}));
  CHECK_FALSE(refused(listener.value()->address()));
  CHECK_FALSE(refused({"localhost", listener.value()->address().port}));
  CHECK_FALSE(refused({"127.0.0.1", silent.listener.port()}));
  CHECK_FALSE(refused({"no-such-host.invalid", 1}));
}

TEST_CASE("uv dial: a refused dial of a name tells which address was tried last") {
  const auto status = dial_and_fail({"localhost", free_port()}, kPatience);
  CHECK(status.code() == Errc::peer_lost);
  CHECK_THAT(status.text(), Catch::Contains("cannot connect to localhost:") && Catch::Contains("(::1)"));
}

TEST_CASE("uv dial: silence ends with the timeout") {
  const SilentPort silent;
  const auto status = dial_and_fail({"127.0.0.1", silent.listener.port()}, Duration::milliseconds(30));
  CHECK(status.code() == Errc::timed_out);
  CHECK(status.text() == "127.0.0.1:" + std::to_string(silent.listener.port()) + " has not answered within 30 ms");
}

TEST_CASE("uv dial: a timeout of nothing still ends once") {
  const SilentPort silent;
  CHECK(dial_and_fail({"127.0.0.1", silent.listener.port()}, {}).code() == Errc::timed_out);
}

TEST_CASE("uv dial: a host that does not exist is an error with its name") {
  // No name service is asked for a label of more than 63 characters.
  const std::string host(80, 'x');
  const auto status = dial_and_fail({host, 1}, kPatience);
  CHECK(status.code() == Errc::peer_lost);
  CHECK_THAT(status.text(), Catch::Contains("cannot find the host \"" + host + "\""));
  CHECK_THAT(dial_and_fail({"", 1}, kPatience).text(), Catch::Contains("cannot find the host \"\""));
  CHECK_FALSE(dial_and_fail({"fe80::1%no-such-card", 1}, kPatience).ok());
}

TEST_CASE("uv dial: the own host name goes through the name service") {
  char name[256] = {};
  REQUIRE(gethostname(name, sizeof name - 1) == 0);
  const auto status = dial_and_fail({name, free_port()}, kPatience);
  CHECK((status.code() == Errc::peer_lost || status.code() == Errc::timed_out));
  CHECK_THAT(status.text(), Catch::Contains(name));
}

TEST_CASE("uv dial: a network that is destroyed drops its dials without a call") {
  {
    const UvLoop first_one_opens_what_all_share;
  }
  const auto before = open_descriptors();
  {
    const SilentPort silent;
    UvLoop loop;
    bool network_lives = true;
    {
      UvNetwork network(loop);
      const auto never = [](Result<std::unique_ptr<Link>>) { FAIL("called"); };
      network.dial({"127.0.0.1", silent.listener.port()}, kPatience, never);
      // The look-up may end before the network is destroyed, but its callback must not come afterwards.
      network.dial({std::string(80, 'x'), 1}, kPatience, [&](Result<std::unique_ptr<Link>>) { CHECK(network_lives); });
      for (int turn = 0; turn < 3; ++turn) loop.poll();
      network.dial({"127.0.0.1", silent.listener.port()}, kPatience, never);
    }
    network_lives = false;
    settle(loop);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("uv dial: the callback may destroy the network and its other dials") {
  UvLoop loop;
  auto network = std::make_unique<UvNetwork>(loop);
  const SilentPort silent;
  int calls = 0;
  const auto destroy = [&](Result<std::unique_ptr<Link>>) {
    ++calls;
    network.reset();
  };
  network->dial({"127.0.0.1", silent.listener.port()}, kPatience, destroy);
  network->dial({"127.0.0.1", free_port()}, kPatience, destroy);
  network->dial({"127.0.0.1", free_port()}, kPatience, destroy);
  CHECK(drive(loop, [&] { return calls > 0; }));
  settle(loop);
  CHECK(calls == 1);
}

TEST_CASE("uv dial: the callback may start the next dial") {
  UvLoop loop;
  UvNetwork network(loop);
  int failures = 0;
  std::function<void()> again = [&] {
    network.dial({"127.0.0.1", free_port()}, kPatience, [&](Result<std::unique_ptr<Link>> link) {
      CHECK_FALSE(link.ok());
      if (++failures < 20) again();
    });
  };
  again();
  CHECK(drive(loop, [&] { return failures == 20; }));
}
