#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/base/bytes.hpp"

namespace ringlet {

using Proof = std::array<std::byte, 32>;
/// Of HMAC-SHA-256, X25519 or ChaCha20-Poly1305.
using Key = std::array<std::byte, 32>;

/// Overwrites a secret whose memory is about to go.
inline void wipe(Bytes secret) {
  // A plain store to what is not read again may be left out.
  for (std::byte& byte : secret) *static_cast<volatile std::byte*>(&byte) = std::byte{0};
}

/// ChaCha20-Poly1305 (RFC 8439) under one key. The nonce is four zero bytes and `counter`, little-endian; who seals uses each once.
class Cipher {
 public:
  static constexpr std::size_t kTagBytes = 16;

  virtual ~Cipher() = default;
  /// Writes what `plain` is encrypted, then the tag, which also covers `associated`. `sealed` has exactly the room, and does not overlap.
  virtual void seal(std::uint64_t counter, ConstBytes associated, std::span<const ConstBytes> plain, Bytes sealed) = 0;
  /// The reverse, into parts that are together as long as what was sealed: they do not overlap `sealed`, or are one part at its beginning.
  /// False where the tag is wrong; the contents of the parts are then undefined.
  virtual bool open(std::uint64_t counter, ConstBytes associated, ConstBytes sealed, std::span<const Bytes> plain) = 0;
};

/// What the handshake asks of the platform's cryptography. Knows the token, and never gives it away.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  /// HMAC-SHA-256 of `message`; the key is the token's text, or empty where there is no token.
  virtual Proof sign(ConstBytes message) = 0;
  /// Fills `out` with bytes that nobody can foretell.
  virtual void fill_random(Bytes out) = 0;

  /// Whether this side's links are encrypted. The other side's must be the same.
  virtual bool encrypts() const = 0;
  /// HMAC-SHA-256 under any key.
  virtual Key hmac(const Key& key, ConstBytes message) = 0;
  /// X25519 (RFC 7748): what the peer may know of a secret of random bytes.
  virtual Key public_key(const Key& secret) = 0;
  /// What both sides can compute from their own secret and the other's public key; nothing where that is a key that gives zero.
  virtual std::optional<Key> agree(const Key& secret, const Key& peer) = 0;
  virtual std::unique_ptr<Cipher> make_cipher(const Key& key) = 0;
};

}  // namespace ringlet
