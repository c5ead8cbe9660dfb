// Tests against known answers: those of the RFCs, and those of a second implementation, which the tests of the browser's side use, too.
#include <openssl/evp.h>

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/rendezvous/key_schedule.hpp"
#include "transport/crypto/record_cipher.hpp"
#include "transport/crypto/strong_token.hpp"
#include "transport/crypto/token_authenticator.hpp"

using namespace ringlet;

namespace {

std::vector<std::byte> bytes_of(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

Key key_of(std::string_view hex) {
  const auto bytes = bytes_of(hex);
  REQUIRE(bytes.size() == 32);
  Key key;
  std::copy(bytes.begin(), bytes.end(), key.begin());
  return key;
}

Key counted_from(int first) {
  Key key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(first + static_cast<int>(i));
  return key;
}

std::unique_ptr<Cipher> make_openssl_cipher(CipherSuite suite, const Key& key) { return std::make_unique<RecordCipher>(suite, key); }

/// `bytes` in up to `most` parts, some of them empty.
template <class Part>
std::vector<Part> cut(Part bytes, std::size_t most, std::mt19937& random) {
  std::vector<Part> parts;
  for (std::size_t i = 1; i < most; ++i) {
    const std::size_t length = random() % 3 == 0 ? 0 : random() % (bytes.size() + 1);
    parts.push_back(bytes.first(length));
    bytes = bytes.subspan(length);
  }
  parts.push_back(bytes);
  return parts;
}

const char* const kFromDialler = "fe8ab2876acb52ef9bcb960c7ff30bd7f37cf9ddcc3d7611a61b8a49a32cb4d2";

}  // namespace

TEST_CASE("X25519 is RFC 7748's") {
  TokenAuthenticator authenticator("");
  const Key alice = key_of("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
  const Key bob = key_of("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
  const Key alice_public = key_of("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
  const Key bob_public = key_of("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
  const Key shared = key_of("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
  CHECK(authenticator.public_key(alice) == alice_public);
  CHECK(authenticator.public_key(bob) == bob_public);
  CHECK(authenticator.agree(alice, bob_public) == shared);
  CHECK(authenticator.agree(bob, alice_public) == shared);
}

TEST_CASE("public keys that give zero are refused") {
  TokenAuthenticator authenticator("");
  Key one{};
  one[0] = std::byte{1};
  const std::vector<Key> low{Key{}, one, key_of("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
                             key_of("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")};
  for (const Key& key : low) CHECK_FALSE(authenticator.agree(counted_from(7), key));
}

TEST_CASE("the key schedule is HKDF") {
  TokenAuthenticator authenticator("a token does not matter here");
  TrafficKeys keys;
  derive_keys(authenticator, counted_from(0), counted_from(100), keys);
  CHECK(keys.from_dialler == key_of(kFromDialler));
  CHECK(keys.from_acceptor == key_of("751574cc548c113ebbefa5652ec79d7bad2409eec4a00e6c01f64f5754d2cb06"));
  CHECK(keys.binding == key_of("ef8f06a2cf92f84acb24cc49b8174803d951cdc8b1f67f055a05614fd5769f7b"));
}

TEST_CASE("a record is of the link's cipher, in however many parts it comes and goes") {
  const auto make_cipher = GENERATE(make_record_cipher, make_openssl_cipher);
  const auto [suite, answer] =
      GENERATE(std::pair{CipherSuite::chacha20_poly1305, "d5cb6747ef33f3fa493ab6b595ffc5eecefd5c1f80e02bb2eb3b954559a58339"},
               std::pair{CipherSuite::aes256_gcm, "f8ee5670184120cf8c3004efe4428d0afda8d6d20dff7a810a91ff00bd092b9b"});
  constexpr std::uint64_t kCounter = 0x0102030405;
  const auto head = bytes_of("10000000");
  const std::string_view letters = "a record of text";
  const ConstBytes text = std::as_bytes(std::span(letters.data(), letters.size()));
  const auto expected = bytes_of(answer);
  const auto made = make_cipher(suite, key_of(kFromDialler));
  Cipher& cipher = *made;
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    CAPTURE(cut);
    std::vector<std::byte> sealed(text.size() + Cipher::kTagBytes), plain(text.size());
    const std::array<ConstBytes, 2> parts{text.first(cut), text.subspan(cut)};
    cipher.seal(kCounter, head, parts, sealed);
    CHECK(sealed == expected);
    const std::array<Bytes, 2> places{Bytes(plain).first(cut), Bytes(plain).subspan(cut)};
    CHECK(cipher.open(kCounter, head, sealed, places));
    CHECK(std::equal(plain.begin(), plain.end(), text.begin(), text.end()));
    CHECK_FALSE(cipher.open(kCounter + 1, head, sealed, places));
    CHECK_FALSE(cipher.open(kCounter, bytes_of("11000000"), sealed, places));
    const Bytes in_place = Bytes(sealed).first(text.size());
    CHECK(cipher.open(kCounter, head, sealed, std::span(&in_place, 1)));
    CHECK(std::equal(in_place.begin(), in_place.end(), text.begin(), text.end()));
  }
}

TEST_CASE("AES-256-GCM gives the answers of its specification") {
  const auto make_cipher = GENERATE(make_record_cipher, make_openssl_cipher);
  // McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B: test cases 13 and 14, with a key and a nonce of zeros.
  const auto made = make_cipher(CipherSuite::aes256_gcm, Key{});
  Cipher& cipher = *made;
  std::vector<std::byte> tag(Cipher::kTagBytes), sealed(2 * Cipher::kTagBytes);
  cipher.seal(0, {}, {}, tag);
  CHECK(tag == bytes_of("530f8afbc74536b9a963b4f1c4cb738b"));
  const std::vector<std::byte> zeros(16);
  const ConstBytes plain(zeros);
  cipher.seal(0, {}, std::span(&plain, 1), sealed);
  CHECK(sealed == bytes_of("cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"));
  CHECK(cipher.open(0, {}, tag, {}));
  tag[15] ^= std::byte{1};
  CHECK_FALSE(cipher.open(0, {}, tag, {}));
}

TEST_CASE("what a native program's cipher seals OpenSSL opens, and the other way round, in any parts, and neither opens what was changed") {
  const auto suite = GENERATE(CipherSuite::chacha20_poly1305, CipherSuite::aes256_gcm);
  std::mt19937 random(31);
  Key key = key_of(kFromDialler);
  const std::array<std::unique_ptr<Cipher>, 2> ciphers{make_record_cipher(suite, key), make_openssl_cipher(suite, key)};
  for (std::uint64_t round = 0; round < 400; ++round) {
    CAPTURE(round);
    if (round % 50 == 49) {
      key[round % key.size()] ^= std::byte{1};
      for (const auto& cipher : ciphers) cipher->set_key(key);
    }
    Cipher &sealing = *ciphers[round % 2], &opening = *ciphers[(round / 2) % 2];
    std::vector<std::byte> plain(round % 5 == 0 ? random() % 70'000 : random() % 300), head(random() % 20);
    for (std::byte& byte : plain) byte = static_cast<std::byte>(random());
    const std::vector<ConstBytes> parts = cut(ConstBytes(plain), 1 + random() % 5, random);
    std::vector<std::byte> sealed(plain.size() + Cipher::kTagBytes), opened(plain.size());
    sealing.seal(round << 20, head, parts, sealed);
    CHECK(opening.open(round << 20, head, sealed, cut(Bytes(opened), 1 + random() % 5, random)));
    CHECK(opened == plain);
    sealed[random() % sealed.size()] ^= static_cast<std::byte>(1 + random() % 255);
    const Bytes whole(opened);
    CHECK_FALSE(opening.open(round << 20, head, sealed, std::span(&whole, 1)));
  }
}

TEST_CASE("a key that replaces another follows from it") {
  const auto make_cipher = GENERATE(make_record_cipher, make_openssl_cipher);
  // The answers are @noble/ciphers'.
  const auto [suite, answer] =
      GENERATE(std::pair{CipherSuite::chacha20_poly1305, "1ab8cec8518b4337c26e90561286402fa0885b0c82cbd275e9ac99d38e455042"},
               std::pair{CipherSuite::aes256_gcm, "c5003b8a6ee9fa04c2e572254601a013a1e7837b84407c5571f21bed5cbedfd6"});
  const auto made = make_cipher(suite, key_of(kFromDialler));
  Cipher& cipher = *made;
  renew_key(cipher);
  const std::string_view letters = "a record of text";
  const ConstBytes text = std::as_bytes(std::span(letters.data(), letters.size()));
  std::vector<std::byte> sealed(text.size() + Cipher::kTagBytes);
  cipher.seal(0x0102030405, bytes_of("10000000"), std::span(&text, 1), sealed);
  CHECK(sealed == bytes_of(answer));
}

TEST_CASE("where OpenSSL may use approved algorithms only, the one that is missing is named, and what does without") {
  struct Approved {
    Approved() { EVP_set_default_properties(nullptr, "fips=yes"); }
    ~Approved() { EVP_set_default_properties(nullptr, ""); }
  } const approved;
  CHECK_THROWS_WITH(TokenAuthenticator("a token", true),
                    Catch::Contains("does not offer X25519") && Catch::Contains("RINGLET_ENCRYPT=off"));
  CHECK_NOTHROW(TokenAuthenticator("a token", false));
  CHECK_THROWS_WITH(strong_token("a word of one's own"), Catch::Contains("does not offer scrypt") && Catch::Contains("`ringlet token`"));
}
