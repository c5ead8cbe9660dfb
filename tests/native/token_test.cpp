#include "native/token.hpp"

#include <catch2/catch.hpp>
#include <ringlet/error.hpp>
#include <set>

#include "tools/tokens/group_token.hpp"
#include "transport/crypto/strong_token.hpp"
#include "transport/crypto/token_authenticator.hpp"

using namespace ringlet;
using Catch::Matchers::Contains;

namespace {

std::string hex(ConstBytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    for (const unsigned half : {static_cast<unsigned>(byte) >> 4, static_cast<unsigned>(byte) & 15u}) text += "0123456789abcdef"[half];
  }
  return text;
}

std::string proof_of(const std::string& token, const std::string& message) {
  return hex(TokenAuthenticator(token).sign(std::as_bytes(std::span(message))));
}

}  // namespace

// The values are those of RFC 4231, cases 1, 2 and 6; for the empty key, that of Python's hmac.
TEST_CASE("proofs are HMAC-SHA-256") {
  CHECK(proof_of(std::string(20, '\x0b'), "Hi There") == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(proof_of("Jefe", "what do ya want for nothing?") == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(proof_of(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  CHECK(proof_of("", "") == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST_CASE("random bytes differ") {
  TokenAuthenticator authenticator("");
  std::array<std::byte, 32> one{}, other{};
  authenticator.fill_random(one);
  authenticator.fill_random(other);
  CHECK(one != other);
}

TEST_CASE("tokens are fresh, long and readable") {
  TokenAuthenticator authenticator("");
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) {
    const std::string token = tokens::make_token(authenticator);
    CHECK(token.size() == 34);
    CHECK(token.find_first_not_of("0123456789abcdefghjkmnpqrstvwxyz-") == std::string::npos);
    CHECK(native::check_token("test", token) == token);
    tokens.insert(token);
  }
  CHECK(tokens.size() == 100);
}

TEST_CASE("a token is trimmed, and a short one refused without being told") {
  // As Python's hashlib.scrypt makes it; wasm/tests has the same value.
  CHECK(native::check_token("here", " \tsixteen letters!\r\n") == "nvq8-dya5-dn6b-m03g-12s8-xv7r-sxr1");
  CHECK(strong_token("0000-0000-0000-0000-0000-0000-0000") != "0000-0000-0000-0000-0000-0000-0000");
  for (const std::string text : {"", "   ", "fifteen letters"}) {
    CHECK_THROWS_AS(native::check_token("here", text), InvalidArgument);
    CHECK_THROWS_WITH(native::check_token("here", text), Contains("the token in here") && Contains("`ringlet token`"));
  }
  CHECK_THROWS_WITH(native::check_token("here", "fifteen letters"), Contains("15 characters") && !Contains("fifteen"));
}
