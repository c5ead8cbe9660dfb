#include <csignal>

#include "tests/transport/loopback.hpp"
#include "tests/transport/raw_socket.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// A user on an accepted link whose peer is a raw socket.
struct RawPeer {
  UvLoop loop;
  UvNetwork network{loop};
  PatternUser user;
  RawSocket peer{-1};
  std::uint16_t peer_port = 0;

  explicit RawPeer(std::size_t bytes_to_send) : user(1, 2, bytes_to_send) {
    auto listener = network.listen(kAnyPort, [this](std::unique_ptr<Link> link) { user.start_on(std::move(link)); });
    REQUIRE(listener.ok());
    new (&peer) RawSocket(RawSocket::connected_to(listener.value()->address().port));
    peer_port = peer.port();
    REQUIRE(drive(loop, [this] { return user.link != nullptr; }));
  }
  bool run_until_failed() {
    return drive(loop, [this] { return user.failed(); });
  }
};

volatile std::sig_atomic_t signals_seen = 0;
void count_signal(int) { signals_seen = signals_seen + 1; }

std::vector<std::byte> pattern_bytes(std::uint64_t seed, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = pattern(seed, i);
  return bytes;
}

}  // namespace

TEST_CASE("uv link: a reset in the middle of a transfer fails the link once, with the peer's name") {
  const bool ready_to_send = GENERATE(false, true);
  CAPTURE(ready_to_send);
  RawPeer end(ready_to_send ? 100'000'000 : 0);
  const auto bytes = pattern_bytes(2, 1'000);
  REQUIRE(::send(end.peer.descriptor(), bytes.data(), bytes.size(), 0) == 1'000);
  REQUIRE(drive(end.loop, [&] { return end.user.received_bytes == 1'000; }));
  end.peer.reset();
  REQUIRE(end.run_until_failed());
  CHECK(end.user.failure.code() == Errc::peer_lost);
  CHECK_THAT(end.user.failure.text(), Catch::Contains("127.0.0.1:" + std::to_string(end.peer_port)) && Catch::Contains("connection reset"));
  end.user.link->wake();
  end.user.link->finish_sending();
  settle(end.loop);
}

TEST_CASE("uv link: what the peer sent before its reset is delivered before the failure") {
  RawPeer end(0);
  const auto bytes = pattern_bytes(2, 50'000);
  REQUIRE(::send(end.peer.descriptor(), bytes.data(), bytes.size(), 0) == 50'000);
  end.peer.reset();
  REQUIRE(end.run_until_failed());
  CHECK(end.user.received_bytes == 50'000);
  CHECK(end.user.intact);
}

TEST_CASE("uv link: a writer that meets the reset first still delivers what came before it") {
  RawPeer end(100'000'000);
  // Unread bytes turn the peer's close into a reset.
  REQUIRE(drive(end.loop, [&] { return end.user.sent_bytes > 0; }));
  const auto bytes = pattern_bytes(2, 50'000);
  REQUIRE(::send(end.peer.descriptor(), bytes.data(), bytes.size(), 0) == 50'000);
  end.peer.close();
  end.user.link->wake();
  REQUIRE(end.run_until_failed());
  CHECK(end.user.received_bytes == 50'000);
  CHECK(end.user.intact);
  CHECK_FALSE(end.user.ended);
}

TEST_CASE("uv link: writing to a peer that is gone fails the link and raises no signal") {
  signals_seen = 0;
  const auto previous = std::signal(SIGPIPE, count_signal);
  RawPeer end(0);
  end.peer.close();
  REQUIRE(drive(end.loop, [&] { return end.user.ended; }));
  // The first write makes the peer send a reset, which a later write meets.
  PatternUser writer(1, 2, 100'000'000);
  writer.on_failed = [&] { CHECK(writer.failure.code() == Errc::peer_lost); };
  end.user.close();
  Pair pair;
  writer.start_on(std::move(pair.dialled));
  pair.accepted.reset();
  REQUIRE(drive(pair.loop, [&] { return writer.failed(); }));
  CHECK(signals_seen == 0);
  std::signal(SIGPIPE, previous);
}

TEST_CASE("uv link: sending goes on after the peer's end, and notices that nobody is there") {
  Pair pair;
  PatternUser writer(1, 2, 100'000'000);
  PatternUser reader(2, 1, 0);
  reader.on_received = [&] {
    if (writer.ended && reader.received_bytes > 1'000'000) reader.close();
  };
  reader.start_on(std::move(pair.accepted));
  reader.link->finish_sending();
  writer.start_on(std::move(pair.dialled));
  REQUIRE(drive(pair.loop, [&] { return writer.failed(); }));
  CHECK(writer.ended);
  CHECK(reader.intact);
  CHECK(reader.received_bytes > 1'000'000);
}

TEST_CASE("uv link: destruction inside link_failed is safe") {
  RawPeer end(10'000'000);
  end.user.on_failed = [&] { end.user.link.reset(); };
  end.peer.reset();
  CHECK(end.run_until_failed());
  settle(end.loop);
}

TEST_CASE("uv link: destroying a link in the drain before its failure ends all calls") {
  RawPeer end(100'000'000);
  REQUIRE(drive(end.loop, [&] { return end.user.sent_bytes > 0; }));
  const auto bytes = pattern_bytes(2, 50'000);
  REQUIRE(::send(end.peer.descriptor(), bytes.data(), bytes.size(), 0) == 50'000);
  end.user.on_received = [&] { end.user.close(); };
  end.peer.close();
  CHECK(drive(end.loop, [&] { return end.user.link == nullptr; }));
  settle(end.loop);
}
