#pragma once

#include <string>

#include "core/ports/authenticator.hpp"

namespace ringlet {

/// The Authenticator of native programs, on OpenSSL's libcrypto. Any thread, one at a time.
class TokenAuthenticator final : public Authenticator {
 public:
  explicit TokenAuthenticator(std::string token) : token_(std::move(token)) {}

  Proof sign(ConstBytes message) override;
  void fill_random(Bytes out) override;

 private:
  const std::string token_;
};

}  // namespace ringlet
