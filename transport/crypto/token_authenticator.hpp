#pragma once

#include <string>

#include "core/ports/authenticator.hpp"

namespace ringlet {

/// The Authenticator of native programs, on OpenSSL's libcrypto. It may be used from any thread, but by only one thread at a time.
class TokenAuthenticator final : public Authenticator {
 public:
  /// Links are encrypted if `token` is not empty.
  explicit TokenAuthenticator(std::string token) : TokenAuthenticator(token, !token.empty()) {}
  TokenAuthenticator(std::string token, bool encrypts);

  Proof sign(ConstBytes message) override;
  void fill_random(Bytes out) override;
  bool encrypts() const override { return encrypts_; }
  Key hmac(const Key& key, ConstBytes message) override;
  Key public_key(const Key& secret) override;
  std::optional<Key> agree(const Key& secret, const Key& peer) override;
  std::unique_ptr<Cipher> make_cipher(const Key& key) override;

 private:
  const std::string token_;
  const bool encrypts_;
};

}  // namespace ringlet
