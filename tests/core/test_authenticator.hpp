#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/ports/authenticator.hpp"
#include "core/wire/frame.hpp"
#include "sim/sim_random.hpp"

namespace ringlet::test {

/// A hash of pieces, for simulations only: it is not secure.
class ToyHash {
 public:
  explicit ToyHash(std::uint64_t start) : hash_(14695981039346656037ull + start) {}
  void mix(std::byte byte) { mix(static_cast<std::uint64_t>(byte)); }
  void mix(ConstBytes bytes) {
    for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t)))
      mix(detail::load_le<std::uint64_t>(bytes.data()));
    for (const std::byte byte : bytes) mix(byte);
  }
  /// Each bit of what was mixed in counts for each bit of the value.
  std::uint64_t value() const { return SimRandom(hash_).next(); }

 private:
  void mix(std::uint64_t number) { hash_ = (hash_ ^ number) * 1099511628211ull; }

  std::uint64_t hash_;
};

/// The bytes of a seeded generator, each number's eight in turn.
class KeyStream {
 public:
  explicit KeyStream(std::uint64_t seed) : random_(seed) {}
  std::byte next() {
    if (left_ == 0) number_ = random_.next();
    left_ = left_ == 0 ? 7 : left_ - 1;
    const auto byte = static_cast<std::byte>(number_);
    number_ >>= 8;
    return byte;
  }

 private:
  SimRandom random_;
  std::uint64_t number_ = 0;
  int left_ = 0;
};

/// A cipher for simulations only: it hides and guards bytes from no one but the code under test.
class ToyCipher final : public Cipher {
 public:
  explicit ToyCipher(CipherSuite suite, const Key& key) : suite_(suite), key_(key) {}

  void seal(std::uint64_t counter, ConstBytes associated, std::span<const ConstBytes> plain, Bytes sealed) override {
    KeyStream stream(hash_of(counter, 1).value());
    std::size_t done = 0;
    for (const ConstBytes part : plain)
      for (const std::byte byte : part) sealed[done++] = byte ^ stream.next();
    const auto tag = tag_of(counter, associated, sealed.first(done));
    std::copy(tag.begin(), tag.end(), sealed.begin() + static_cast<std::ptrdiff_t>(done));
  }
  bool open(std::uint64_t counter, ConstBytes associated, ConstBytes sealed, std::span<const Bytes> plain) override {
    const ConstBytes content = sealed.first(sealed.size() - kTagBytes);
    const auto tag = tag_of(counter, associated, content);
    const bool right = std::equal(tag.begin(), tag.end(), sealed.end() - static_cast<std::ptrdiff_t>(kTagBytes));
    KeyStream stream(hash_of(counter, 1).value());
    std::size_t done = 0;
    for (const Bytes part : plain)
      for (std::byte& byte : part) byte = content[done++] ^ stream.next();
    return right;
  }
  void set_key(const Key& key) override { key_ = key; }

 private:
  ToyHash hash_of(std::uint64_t counter, std::uint64_t start) const {
    ToyHash hash(start);
    hash.mix(std::byte{set_of(suite_)});
    hash.mix(key_);
    for (int shift = 0; shift < 64; shift += 8) hash.mix(static_cast<std::byte>(counter >> shift));
    return hash;
  }
  std::array<std::byte, kTagBytes> tag_of(std::uint64_t counter, ConstBytes associated, ConstBytes content) const {
    std::array<std::byte, kTagBytes> tag{};
    for (std::size_t half = 0; half < 2; ++half) {
      ToyHash hash = hash_of(counter, 2 + half);
      hash.mix(associated);
      hash.mix(content);
      detail::store_le(tag.data() + 8 * half, hash.value());
    }
    return tag;
  }

  const CipherSuite suite_;
  Key key_;
};

/// An insecure authenticator for simulations: the same seed gives the same nonces. Its proofs and keys tell tokens and messages apart.
class TestAuthenticator final : public Authenticator {
 public:
  explicit TestAuthenticator(std::uint64_t seed, std::string token = "", bool encrypts = false)
      : random_(seed), token_(std::move(token)), encrypts_(encrypts) {}

  Proof sign(ConstBytes message) override { return hash(std::as_bytes(std::span(token_)), message); }
  void fill_random(Bytes out) override {
    for (std::byte& byte : out) byte = static_cast<std::byte>(random_.next());
  }
  bool encrypts() const override { return encrypts_; }
  Key hmac(const Key& key, ConstBytes message) override { return hash(key, message); }
  /// Computes powers modulo a prime. The bytes that such a number does not fill are a hash of the secret.
  Key public_key(const Key& secret) override {
    Key key = hash(secret, {});
    detail::store_le(key.data(), power(3, detail::load_le<std::uint64_t>(secret.data())));
    return key;
  }
  std::optional<Key> agree(const Key& secret, const Key& peer) override {
    const std::uint64_t agreed = power(detail::load_le<std::uint64_t>(peer.data()) % kPrime, detail::load_le<std::uint64_t>(secret.data()));
    if (agreed == 0) return std::nullopt;
    Key key{};
    detail::store_le(key.data(), agreed);
    return key;
  }
  CipherSet ciphers() const override { return offered; }
  std::unique_ptr<Cipher> make_cipher(CipherSuite suite, const Key& key) override {
    made = suite;
    return std::make_unique<ToyCipher>(suite, key);
  }

  CipherSet offered = kAllCiphers;
  std::optional<CipherSuite> made{};  // the cipher of the last link

 private:
  static constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;

  static Proof hash(ConstBytes key, ConstBytes message) {
    Proof proof{};
    for (std::size_t i = 0; i < proof.size(); ++i) {
      ToyHash piece(i);
      piece.mix(key);
      piece.mix(std::byte{0xff});
      piece.mix(message);
      proof[i] = static_cast<std::byte>(piece.value() >> 40);
    }
    return proof;
  }
  static std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    for (; b != 0; b >>= 1, a = a * 2 % kPrime)
      if ((b & 1) != 0) product = (product + a) % kPrime;
    return product;
  }
  static std::uint64_t power(std::uint64_t base, std::uint64_t exponent) {
    std::uint64_t result = 1;
    for (; exponent != 0; exponent >>= 1, base = times(base, base))
      if ((exponent & 1) != 0) result = times(result, base);
    return result;
  }

  SimRandom random_;
  std::string token_;
  bool encrypts_;
};

}  // namespace ringlet::test
