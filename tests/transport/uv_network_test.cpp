#include "tests/transport/loopback.hpp"
#include "tests/transport/raw_socket.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

Acceptor ignore_links() {
  return [](std::unique_ptr<Link>) {};
}

}  // namespace

TEST_CASE("uv network: listen reports the real port, also on IPv6 and localhost") {
  const auto host = GENERATE(as<std::string>{}, "127.0.0.1", "0.0.0.0", "::1", "::", "localhost");
  CAPTURE(host);
  UvLoop loop;
  UvNetwork network(loop);
  const auto listener = network.listen({host, 0}, ignore_links());
  CHECK(listener.status().text() == "");
  REQUIRE(listener.ok());
  CHECK(listener.value()->address().port != 0);
  CHECK(listener.value()->address().host == (host == "localhost" ? "127.0.0.1" : host));
}

TEST_CASE("uv network: IPv6 carries data") {
  Pair pair({"::1", 0});
  CHECK_THAT(pair.accepted->peer_name(), Catch::StartsWith("[::1]:"));
  PatternUser left(1, 2, 100'000);
  PatternUser right(2, 1, 100'000);
  left.start_on(std::move(pair.dialled));
  right.start_on(std::move(pair.accepted));
  CHECK(drive(pair.loop, [&] { return left.received_bytes == 100'000 && right.received_bytes == 100'000; }));
  CHECK(left.intact);
  CHECK(right.intact);
}

TEST_CASE("uv network: a taken port is an error that names it") {
  UvLoop loop;
  UvNetwork network(loop);
  const auto taken = RawSocket::listening(1);
  const auto status = network.listen({"127.0.0.1", taken.port()}, ignore_links()).status();
  CHECK(status.code() == Errc::invalid_argument);
  CHECK(status.text() == "127.0.0.1:" + std::to_string(taken.port()) + " is in use by another program; choose another port");
}

TEST_CASE("uv network: addresses that cannot be listened on are errors") {
  UvLoop loop;
  UvNetwork network(loop);
  const auto [host, reason] = GENERATE(table<std::string, std::string>({
      {"192.0.2.1", "192.0.2.1 is not an address of this machine"},
      {"some-host", "\"some-host\": it is neither a numeric address"},
      {"", "\"\": it is neither a numeric address"},
      {"fe80::1%no-such-card", "\"fe80::1%no-such-card\": it is neither a numeric address"},
  }));
  const auto status = network.listen({host, 0}, ignore_links()).status();
  CHECK(status.code() == Errc::invalid_argument);
  CHECK_THAT(status.text(), Catch::Contains(reason));
}

TEST_CASE("uv network: a closed listener frees its port at once and its links live on") {
  UvLoop loop;
  UvNetwork network(loop);
  PatternUser left(1, 2, 1'000);
  PatternUser right(2, 1, 1'000);
  std::unique_ptr<Listener> listener;
  // The listener is destroyed inside its own callback.
  auto opened = network.listen(kAnyPort, [&](std::unique_ptr<Link> link) {
    right.start_on(std::move(link));
    listener.reset();
  });
  REQUIRE(opened.ok());
  listener = std::move(opened).value();
  const auto address = listener->address();
  network.dial(address, kPatience, [&](Result<std::unique_ptr<Link>> link) { left.start_on(std::move(link).value()); });
  REQUIRE(drive(loop, [&] { return left.received_bytes == 1'000 && right.received_bytes == 1'000; }));
  CHECK_FALSE(listener);
  CHECK(network.listen(address, ignore_links()).ok());
}

TEST_CASE("uv network: an inherited listening socket is taken over") {
  auto raw = RawSocket::listening(16);
  const auto port = raw.port();
  UvLoop loop;
  UvNetwork network(loop);
  std::unique_ptr<Link> accepted;
  auto listener = network.adopt_listener(UniqueFd(raw.release()), [&](std::unique_ptr<Link> link) { accepted = std::move(link); });
  REQUIRE(listener.ok());
  CHECK(listener.value()->address() == Address{"127.0.0.1", port});
  const auto client = RawSocket::connected_to(port);
  CHECK(drive(loop, [&] { return accepted != nullptr; }));
}

TEST_CASE("uv network: a descriptor that does not listen is refused") {
  UvLoop loop;
  UvNetwork network(loop);
  RawSocket idle;
  int pipes[2];
  REQUIRE(::pipe(pipes) == 0);
  const auto reason_for = [&](int descriptor) {
    const auto status = network.adopt_listener(UniqueFd(descriptor), ignore_links()).status();
    CHECK(status.code() == Errc::invalid_argument);
    return status.text();
  };
  CHECK_THAT(reason_for(idle.release()), Catch::Contains("does not listen yet"));
  CHECK_THAT(reason_for(pipes[0]), Catch::Contains("descriptor " + std::to_string(pipes[0])) && Catch::Contains("not a socket"));
  CHECK(::close(pipes[1]) == 0);
  CHECK_THAT(reason_for(-1), Catch::Contains("not open"));
}

TEST_CASE("uv network: without descriptors connections wait and the loop does not spin") {
  UvLoop loop;
  UvNetwork network(loop);
  std::unique_ptr<Link> accepted;
  auto listener = network.listen(kAnyPort, [&](std::unique_ptr<Link> link) { accepted = std::move(link); });
  REQUIRE(listener.ok());
  const auto client = RawSocket::connected_to(listener.value()->address().port);
  {
    const NoDescriptorsLeft none;
    bool timer_ran = false;
    int turns = 0;
    loop.after(Duration::milliseconds(20), [&] { timer_ran = true; });
    for (; !timer_ran; ++turns) loop.wait();
    CHECK(turns < 20);
    CHECK_FALSE(accepted);
  }
  CHECK(drive(loop, [&] { return accepted != nullptr; }));
}

TEST_CASE("uv network: two hundred connections, and no descriptor leaks") {
  {
    const UvLoop first_one_opens_what_all_share;
  }
  const auto before = open_descriptors();
  {
    UvLoop loop;
    UvNetwork network(loop);
    constexpr std::size_t kConnections = 200;
    constexpr std::size_t kBytes = 5'000;
    std::vector<std::unique_ptr<PatternUser>> users;
    std::size_t dialled = 0;
    std::size_t accepted = 0;
    const auto add = [&](std::unique_ptr<Link> link) {
      users.push_back(std::make_unique<PatternUser>(1, 1, kBytes, 1'000));
      users.back()->start_on(std::move(link));
    };
    auto listener = network.listen(kAnyPort, [&](std::unique_ptr<Link> link) {
      ++accepted;
      add(std::move(link));
    });
    REQUIRE(listener.ok());
    for (std::size_t wave = 0; wave < kConnections; wave += 50) {
      for (int i = 0; i < 50; ++i)
        network.dial(listener.value()->address(), kPatience, [&](Result<std::unique_ptr<Link>> link) {
          REQUIRE(link.ok());
          ++dialled;
          add(std::move(link).value());
        });
      REQUIRE(drive(loop, [&] { return dialled == wave + 50 && accepted == wave + 50; }));
    }
    const auto all_done = [&] {
      return std::all_of(users.begin(), users.end(), [](const auto& user) { return user->received_bytes == kBytes; });
    };
    CHECK(drive(loop, all_done));
    CHECK(std::all_of(users.begin(), users.end(), [](const auto& user) { return user->intact; }));
  }
  CHECK(open_descriptors() == before);
}
