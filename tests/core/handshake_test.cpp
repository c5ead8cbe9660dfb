#include "core/rendezvous/handshake.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "tests/core/raw_peer.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/tapped_handshake.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

PathOptions byte_by_byte() {
  PathOptions paths;
  paths.send_buffer_bytes = paths.receive_buffer_bytes = {1, 3};
  return paths;
}

}  // namespace

TEST_CASE("both sides prove that they know the token and hand the link on untouched") {
  const bool small = GENERATE(false, true);
  const bool encrypts = GENERATE(false, true);
  const std::string token = GENERATE("", "token");
  for (const auto seed : seeds(30)) {
    CAPTURE(seed, small, encrypts, token);
    Two two(seed, small ? byte_by_byte() : PathOptions{}, token, token, encrypts);
    two.dial(two.listener->address());
    // Both sides send immediately after the handshake.
    REQUIRE(two.world.run_until([&] { return two.dialled && two.accepted; }) == RunEnd::done);
    REQUIRE(two.dialled->ok());
    REQUIRE(two.accepted->ok());
    CHECK(*two.request == kRequest);
    two.dialler_user.send(5000);
    two.acceptor_user.send(7000);
    REQUIRE(two.world.run_until([&] { return two.acceptor_user.incoming.size() == 5000 && two.dialler_user.incoming.size() == 7000; }) ==
            RunEnd::done);
    CHECK(two.acceptor_user.incoming == two.dialler_user.outgoing);
    CHECK(two.dialler_user.incoming == two.acceptor_user.outgoing);
  }
}

TEST_CASE("both ends of a link share a binding that no other link has") {
  const bool encrypts = GENERATE(false, true);
  const std::string token = GENERATE("", "token");
  std::set<LinkBinding> all{LinkBinding{}};
  for (const auto seed : seeds(30)) {
    CAPTURE(seed, encrypts, token);
    Two two(seed, PathOptions{}, token, token, encrypts);
    // The tap only passes the bytes on, so the ends have a link with each other.
    two.dial(seed % 2 == 0 ? two.listener->address() : two.tap_listener->address());
    REQUIRE(two.world.run_until([&] { return two.dialler_user.link && two.acceptor_user.link; }) == RunEnd::done);
    CHECK(two.dialler_user.link->binding() == two.acceptor_user.link->binding());
    CHECK(all.insert(two.dialler_user.link->binding()).second);
  }
}

TEST_CASE("who knows the token and speaks with both ends has two bindings") {
  const bool encrypts = GENERATE(false, true);
  // The acceptor of one link and the dialler of the other are the one in the middle.
  Two first(1, PathOptions{}, "token", "token", encrypts), second(2, PathOptions{}, "token", "token", encrypts);
  for (Two* two : {&first, &second}) {
    two->dial(two->listener->address());
    REQUIRE(two->world.run_until([&] { return two->dialler_user.link && two->acceptor_user.link; }) == RunEnd::done);
  }
  CHECK(first.dialler_user.link->binding() != second.acceptor_user.link->binding());
}

TEST_CASE("the acceptor may keep the dialler waiting") {
  Two two(1, PathOptions{}, "token", "token");
  two.accept = false;
  two.dial(two.listener->address());
  two.world.run_for(Duration::seconds(5));
  REQUIRE(two.request);
  CHECK_FALSE(two.dialled);
  CHECK_FALSE(two.accepted);
  two.handshake->accept();
  two.world.run_for(Duration::seconds(1));
  CHECK(two.dialled->ok());
  CHECK(two.accepted->ok());
}

TEST_CASE("a dialler that goes while it waits is noticed") {
  Two two(1, PathOptions{}, "token", "token");
  two.accept = false;
  two.dial(two.listener->address());
  two.world.run_for(Duration::seconds(1));
  two.world.stop(two.dialling).now();
  two.world.run_for(Duration::seconds(1));
  REQUIRE(two.accepted);
  CHECK(two.accepted->code() == Errc::peer_lost);
}

TEST_CASE("another token, or none on one side, is refused without a byte") {
  const std::pair<std::string, std::string> tokens =
      GENERATE(std::pair<std::string, std::string>{"one token", "other token"}, std::pair<std::string, std::string>{"", "other token"},
               std::pair<std::string, std::string>{"one token", ""});
  for (const auto seed : seeds(20)) {
    CAPTURE(seed, tokens.first, tokens.second);
    Two two(seed, PathOptions{}, tokens.first, tokens.second);
    two.wanted.kind = LinkRequest::Kind::link;
    two.dial(two.tap_listener->address());
    two.run();
    REQUIRE(two.dialled);
    CHECK(two.dialled->code() == Errc::mismatch);
    CHECK_THAT(two.dialled->text(), Contains("tokens differ, or one side has none") && Contains("RINGLET_TOKEN_FILE"));
    CHECK_THAT(two.dialled->text(), !Contains("one token") && !Contains("other token"));
    REQUIRE(two.accepted);
    CHECK(two.accepted->code() == Errc::mismatch);
    CHECK_FALSE(two.request);
    CHECK(two.tap.from_acceptor.seen.size() == kPrefaceBytes + kNonceBytes);
  }
}

TEST_CASE("every byte of the handshake counts") {
  const std::size_t dialler_bytes = kPrefaceBytes + kNonceBytes + kRequestBytes + sizeof(Proof);
  const std::size_t acceptor_bytes = kPrefaceBytes + kNonceBytes + sizeof(Proof);
  const bool encrypts = GENERATE(false, true);
  // Among the changes are those of each offered cipher, alone and together.
  const unsigned change = encrypts ? GENERATE(2, 4, 6) : 4;
  for (std::size_t at = 0; at < dialler_bytes + acceptor_bytes; ++at) {
    CAPTURE(at, encrypts, change);
    Two two(at, PathOptions{}, "token", "token", encrypts);
    const bool of_dialler = at < dialler_bytes;
    const std::size_t place = of_dialler ? at : at - dialler_bytes;
    two.tap.change = [&](bool from_dialler, std::size_t byte_at, std::byte byte) {
      return from_dialler == of_dialler && byte_at == place ? byte ^ static_cast<std::byte>(change) : byte;
    };
    two.dial(two.tap_listener->address());
    two.run();
    REQUIRE(two.dialled);
    CHECK_FALSE(two.dialled->ok());
    // Only the dialler finds the acceptor's changed bytes wrong; by then the acceptor has proved itself to nobody.
    if (of_dialler || place < kPrefaceBytes + kNonceBytes) CHECK_FALSE(two.request);
    CHECK(two.tap.from_dialler.seen.size() <= dialler_bytes);
    CHECK(two.tap.from_acceptor.seen.size() <= acceptor_bytes);
  }
}

TEST_CASE("a recorded handshake opens nothing a second time") {
  const bool encrypts = GENERATE(false, true);
  std::vector<std::byte> recorded;
  {
    Two two(1, PathOptions{}, "token", "token", encrypts);
    two.dial(two.tap_listener->address());
    two.run();
    REQUIRE(two.accepted->ok());
    recorded = two.tap.from_dialler.seen;
  }
  Two two(2, PathOptions{}, "token", "token", encrypts);
  RawPeer replayer(two.world);
  replayer.dial_until_linked(two.listener->address(), [&] { replayer.send(recorded); });
  two.run();
  REQUIRE(two.accepted);
  CHECK(two.accepted->code() == Errc::mismatch);
}

TEST_CASE("an encrypted link shows nothing to who stands in between, and lets nothing be changed") {
  constexpr std::size_t kBytes = 3000;
  const std::size_t before = kPrefaceBytes + kNonceBytes + kRequestBytes + sizeof(Proof);
  std::vector<std::byte> first_time;
  for (const auto seed : seeds(20)) {
    // The same bytes look different on two links; with a bit flipped they do not arrive.
    const bool changes = seed % 2 == 1;
    Two two(seed, PathOptions{}, "token", "token", true);
    if (changes) {
      two.tap.change = [&](bool from_dialler, std::size_t at, std::byte byte) {
        return from_dialler && at == before + seed * 37 % kBytes ? byte ^ std::byte{1} : byte;
      };
    }
    two.dial(two.tap_listener->address());
    REQUIRE(two.world.run_until([&] { return two.dialled && two.accepted; }) == RunEnd::done);
    REQUIRE(two.dialled->ok());
    two.dialler_user.send(kBytes);
    two.run();
    CHECK(two.acceptor_user.incoming.size() == (changes ? 0 : kBytes));
    CHECK(two.acceptor_user.failure.has_value() == changes);
    const auto& seen = two.tap.from_dialler.seen;
    REQUIRE(seen.size() > before + kBytes);
    CHECK(std::search(seen.begin(), seen.end(), two.dialler_user.outgoing.begin(), two.dialler_user.outgoing.begin() + 16) == seen.end());
    CHECK(seen != first_time);
    first_time = seen;
  }
}

TEST_CASE("one side that encrypts and one that does not: both are told, and nothing goes on") {
  const bool dialler_encrypts = GENERATE(false, true);
  const std::string token = GENERATE("", "token");
  Two two(1, PathOptions{}, token, token, dialler_encrypts, !dialler_encrypts);
  two.dial(two.tap_listener->address());
  two.run();
  REQUIRE(two.dialled);
  CHECK(two.dialled->code() == Errc::mismatch);
  CHECK_THAT(two.dialled->text(), Contains("RINGLET_ENCRYPT=on") && Contains("RINGLET_ENCRYPT=off") &&
                                      Contains(dialler_encrypts ? "this rank encrypts" : "this rank does not encrypt"));
  REQUIRE(two.accepted);
  CHECK(two.accepted->code() == Errc::mismatch);
  CHECK_FALSE(two.request);
  CHECK(two.tap.from_dialler.seen.size() == kPrefaceBytes + kNonceBytes);
}

TEST_CASE("who cannot know the token cannot choose the keys, whatever public key it sends") {
  // The acceptor's nonce is replaced by a public key that makes the agreed key zero, so the proofs do not match any more.
  Two two(1, PathOptions{}, "token", "token", true);
  two.tap.change = [](bool from_dialler, std::size_t at, std::byte byte) {
    return !from_dialler && at >= kPrefaceBytes && at < kPrefaceBytes + kNonceBytes ? std::byte{} : byte;
  };
  two.dial(two.tap_listener->address());
  two.run();
  REQUIRE(two.dialled);
  CHECK_FALSE(two.dialled->ok());
  REQUIRE(two.accepted);
  CHECK(two.accepted->code() == Errc::mismatch);
  CHECK_FALSE(two.request);
}

TEST_CASE("another version is named by both sides' own error") {
  Two two(1, PathOptions{}, "token", "token");
  SECTION("the acceptor's") {
    two.tap.change = [](bool from_dialler, std::size_t at, std::byte byte) { return !from_dialler && at == 4 ? std::byte{9} : byte; };
  }
  SECTION("the dialler's: the acceptor still says its own") {
    two.tap.change = [](bool from_dialler, std::size_t at, std::byte byte) {
      if (at != 4) return byte;
      return from_dialler ? std::byte{9} : std::byte{9};
    };
  }
  two.dial(two.tap_listener->address());
  two.run();
  REQUIRE(two.dialled);
  CHECK(two.dialled->code() == Errc::protocol_error);
  CHECK_THAT(two.dialled->text(), Contains("version 9") && Contains("version " + std::to_string(kWireVersion)));
  CHECK_FALSE(two.request);
}

TEST_CASE("a relay has no shortcut") {
  Two two(1, PathOptions{}, "token", "token");
  std::unique_ptr<DialHandshake> handshake;
  std::optional<Status> outcome;
  two.dialling.network().dial(two.listener->address(), Duration::seconds(5), [&](Result<std::unique_ptr<Link>> link) {
    const LinkRequest request{.kind = LinkRequest::Kind::relay, .from = 2, .to = 3, .shortcut = true};
    handshake = std::make_unique<DialHandshake>(two.dialling.loop(), std::move(link).value(), two.dialler_authenticator, request,
                                                [&](Result<std::unique_ptr<Link>> ended) { outcome = ended.status(); });
  });
  two.run();
  CHECK_FALSE(two.request);
  REQUIRE(outcome);
  CHECK_FALSE(outcome->ok());
}

TEST_CASE("a handshake that is cut off anywhere ends in an error") {
  std::vector<std::byte> whole;
  {
    Two two(1, PathOptions{}, "token", "token");
    two.dial(two.tap_listener->address());
    two.run();
    whole = two.tap.from_dialler.seen;
  }
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    Two two(1, PathOptions{}, "token", "token");
    RawPeer peer(two.world);
    peer.dial_until_linked(two.listener->address(), [&] {
      peer.send(ConstBytes(whole).first(length));
      peer.finish_sending();
    });
    two.run();
    REQUIRE(two.accepted);
    CHECK(two.accepted->code() == Errc::peer_lost);
  }
}

TEST_CASE("an acceptor that says nothing is given up") {
  Two two(1, PathOptions{}, "token", "token");
  two.world.freeze(two.accepting).now();
  two.dial(two.listener->address());
  two.run();
  REQUIRE(two.dialled);
  CHECK(two.dialled->code() == Errc::timed_out);
  CHECK_THAT(two.dialled->text(), Contains("10000 ms"));
}

TEST_CASE("what is no rank is told from one that is") {
  SimWorld world(1);
  SimNode& node = world.add_node();
  SimNode& other = world.add_node();
  TestAuthenticator authenticator(1);
  Dialler dialler(node.loop(), node.network(), authenticator);
  ByteUser stranger;
  const auto listener = std::move(other.network().listen({other.host(), 0}, [&](std::unique_ptr<Link> link) {
                          stranger.use(std::move(link));
                          stranger.send(100);
                        })).value();
  std::optional<Status> dialled;
  dialler.dial(listener->address(), DialTimes{}, LinkRequest{}, [&](Result<std::unique_ptr<Link>> outcome) { dialled = outcome.status(); });
  world.run_until_idle({.time = Duration::seconds(60)});
  REQUIRE(dialled);
  CHECK(dialled->code() == Errc::protocol_error);
  CHECK_THAT(dialled->text(), Contains("does not speak Ringlet's protocol"));
}
