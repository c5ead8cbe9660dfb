#pragma once

#include <string>

#include "core/ports/authenticator.hpp"
#include "transport/crypto/aes_hardware.hpp"

namespace ringlet {

/// ChaCha20-Poly1305, and AES-256-GCM where this processor computes it, in constant time and faster than the other.
inline CipherSet preferred_ciphers() {
  return static_cast<CipherSet>(set_of(CipherSuite::chacha20_poly1305) | (has_aes_hardware() ? set_of(CipherSuite::aes256_gcm) : 0));
}

/// The Authenticator of native programs, on OpenSSL's libcrypto. It may be used from any thread, but by only one thread at a time.
class TokenAuthenticator final : public Authenticator {
 public:
  /// Links are encrypted if `token` is not empty.
  explicit TokenAuthenticator(std::string token) : TokenAuthenticator(token, !token.empty()) {}
  /// `ciphers` are those that links may have, one at least.
  TokenAuthenticator(std::string token, bool encrypts, CipherSet ciphers = preferred_ciphers());

  Proof sign(ConstBytes message) override;
  void fill_random(Bytes out) override;
  bool encrypts() const override { return encrypts_; }
  Key hmac(const Key& key, ConstBytes message) override;
  Key public_key(const Key& secret) override;
  std::optional<Key> agree(const Key& secret, const Key& peer) override;
  CipherSet ciphers() const override { return ciphers_; }
  std::unique_ptr<Cipher> make_cipher(CipherSuite suite, const Key& key) override;

 private:
  const std::string token_;
  const bool encrypts_;
  const CipherSet ciphers_;
};

}  // namespace ringlet
