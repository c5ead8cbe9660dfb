#pragma once

#include <string>
#include <utility>

#include "core/ports/authenticator.hpp"

namespace ringlet::browser {

/// The cryptography of the host (JavaScript). The host brings its own code for it, because pages on plain http have no crypto.subtle.
class BrowserAuthenticator final : public Authenticator {
 public:
  BrowserAuthenticator(std::string token, bool encrypts) : token_(std::move(token)), encrypts_(encrypts) {}
  Proof sign(ConstBytes message) override;
  void fill_random(Bytes out) override;
  bool encrypts() const override { return encrypts_; }
  Key hmac(const Key& key, ConstBytes message) override;
  Key public_key(const Key& secret) override;
  std::optional<Key> agree(const Key& secret, const Key& peer) override;
  // AES without the processor's instructions is slow or leaks its key by its time, and crypto.subtle answers only later.
  CipherSet ciphers() const override { return set_of(CipherSuite::chacha20_poly1305); }
  std::unique_ptr<Cipher> make_cipher(CipherSuite suite, const Key& key) override;

 private:
  const std::string token_;
  const bool encrypts_;
};

}  // namespace ringlet::browser
