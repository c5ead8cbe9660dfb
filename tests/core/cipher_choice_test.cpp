// Tests of how the two ends of a link agree on its cipher, and of who stands in between and wants a weaker one.
#include <catch2/catch.hpp>

#include "tests/core/tapped_handshake.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

TEST_CASE("a link has AES-256-GCM where both sides take it, else ChaCha20-Poly1305, else it is refused by both") {
  constexpr CipherSet chacha20 = set_of(CipherSuite::chacha20_poly1305), aes = set_of(CipherSuite::aes256_gcm);
  for (const CipherSet ours : {chacha20, aes, kAllCiphers})
    for (const CipherSet theirs : {chacha20, aes, kAllCiphers}) {
      CAPTURE(ours, theirs);
      Two two(1, PathOptions{}, "token", "token", true);
      two.dialler_authenticator.offered = ours;
      two.acceptor_authenticator.offered = theirs;
      two.dial(two.listener->address());
      two.run();
      REQUIRE((two.dialled && two.accepted));
      if ((ours & theirs) == 0) {
        for (const auto& status : {two.dialled, two.accepted}) {
          CHECK(status->code() == Errc::mismatch);
          CHECK_THAT(status->text(), Contains("RINGLET_CIPHER") && Contains("chacha20") && Contains("aes256gcm"));
        }
        CHECK_FALSE(two.request);
        continue;
      }
      REQUIRE((two.dialled->ok() && two.accepted->ok()));
      const CipherSuite expected = (ours & theirs & aes) != 0 ? CipherSuite::aes256_gcm : CipherSuite::chacha20_poly1305;
      CHECK(two.dialler_authenticator.made == expected);
      CHECK(two.acceptor_authenticator.made == expected);
      two.dialler_user.send(5000);
      two.run();
      CHECK(two.acceptor_user.incoming == two.dialler_user.outgoing);
    }
}

TEST_CASE("who takes a cipher out of an offer on its way is noticed, and no weaker link is opened") {
  const std::string token = GENERATE("", "token");
  const unsigned way = GENERATE(0u, 1u, 2u);  // the dialler's offer, the acceptor's, or both
  Two two(1, PathOptions{}, token, token, true);
  two.wanted.kind = LinkRequest::Kind::link;
  two.tap.change = [&](bool from_dialler, std::size_t at, std::byte byte) {
    const bool taken = at == 6 && (way == 2 || from_dialler == (way == 0));
    return taken ? byte & ~std::byte{set_of(CipherSuite::aes256_gcm)} : byte;
  };
  two.dial(two.tap_listener->address());
  two.run();
  REQUIRE((two.dialled && two.accepted));
  CHECK_FALSE(two.dialled->ok());
  CHECK_THAT(two.dialled->text(), Contains("somebody on the way has changed the handshake"));
  CHECK(two.accepted->code() == Errc::mismatch);
  CHECK_THAT(two.accepted->text(), Contains("somebody on the way has changed the handshake"));
  CHECK_FALSE(two.request);
  CHECK_FALSE(two.dialler_authenticator.made);
  CHECK_FALSE(two.acceptor_authenticator.made);
}

TEST_CASE("an offer of ciphers without encryption, or of none with it, is refused") {
  const bool encrypts = GENERATE(false, true);
  Two two(1, PathOptions{}, "token", "token", encrypts);
  two.tap.change = [&](bool from_dialler, std::size_t at, std::byte byte) {
    return from_dialler && at == 6 ? (encrypts ? kEncrypts : kCiphers) : byte;
  };
  two.dial(two.tap_listener->address());
  two.run();
  REQUIRE(two.accepted);
  CHECK(two.accepted->code() == (encrypts ? Errc::mismatch : Errc::protocol_error));
  CHECK_FALSE(two.request);
}
