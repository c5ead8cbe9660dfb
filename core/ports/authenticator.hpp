#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/bytes.hpp"

namespace ringlet {

using Proof = std::array<std::byte, 32>;
/// A key of HMAC-SHA-256, X25519 or a cipher.
using Key = std::array<std::byte, 32>;

/// Overwrites a secret before its memory is freed.
inline void wipe(Bytes secret) {
  // The compiler may leave out a plain store to memory that is not read again.
  for (std::byte& byte : secret) *static_cast<volatile std::byte*>(&byte) = std::byte{0};
}

/// An authenticated cipher with keys of 32 bytes, nonces of 12 and tags of 16. The numbers are bits of the preface's flags (handshake.hpp).
enum class CipherSuite : std::uint8_t {
  chacha20_poly1305 = 2,  // RFC 8439
  aes256_gcm = 4,         // NIST SP 800-38D
};
/// As in RINGLET_CIPHER.
constexpr std::string_view name_of(CipherSuite suite) { return suite == CipherSuite::aes256_gcm ? "aes256gcm" : "chacha20"; }
/// A set of ciphers, by their bits.
using CipherSet = std::uint8_t;
inline constexpr CipherSet kAllCiphers = 2 | 4;
constexpr CipherSet set_of(CipherSuite suite) { return static_cast<CipherSet>(suite); }

/// A cipher under one key. The nonce is four zero bytes and `counter`, little-endian. Each counter may be used for sealing once under a
/// key.
class Cipher {
 public:
  static constexpr std::size_t kTagBytes = 16;

  virtual ~Cipher() = default;
  /// Encrypts `plain`, and appends the tag, which also covers `associated`. `sealed` has exactly the room for both, and does not overlap
  /// `plain`.
  virtual void seal(std::uint64_t counter, ConstBytes associated, std::span<const ConstBytes> plain, Bytes sealed) = 0;
  /// Decrypts into parts that have the plaintext's length together. They do not overlap `sealed`, or are one part at its beginning. Returns
  /// false where the tag is wrong; the contents of the parts are then undefined.
  virtual bool open(std::uint64_t counter, ConstBytes associated, ConstBytes sealed, std::span<const Bytes> plain) = 0;
  /// Goes on under another key.
  virtual void set_key(const Key& key) = 0;
};

/// The platform's cryptography, for the handshake. It knows the token, and never passes it on.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  /// HMAC-SHA-256 of `message` under the token's text, or under an empty key where there is no token.
  virtual Proof sign(ConstBytes message) = 0;
  /// Fills `out` with random bytes that cannot be predicted.
  virtual void fill_random(Bytes out) = 0;

  /// Whether this side's links are encrypted. The other side has to have the same setting.
  virtual bool encrypts() const = 0;
  /// HMAC-SHA-256 under any key.
  virtual Key hmac(const Key& key, ConstBytes message) = 0;
  /// X25519 (RFC 7748): the public key of a secret, which consists of random bytes.
  virtual Key public_key(const Key& secret) = 0;
  /// X25519: the secret that both sides compute from their own secret and the other's public key. Returns nothing where the peer's key
  /// makes the secret zero.
  virtual std::optional<Key> agree(const Key& secret, const Key& peer) = 0;
  /// The ciphers that this side takes, one at least. Where both sides take AES-256-GCM, a link has that.
  virtual CipherSet ciphers() const = 0;
  virtual std::unique_ptr<Cipher> make_cipher(CipherSuite suite, const Key& key) = 0;
};

}  // namespace ringlet
