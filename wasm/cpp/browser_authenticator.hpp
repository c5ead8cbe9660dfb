#pragma once

#include <string>
#include <utility>

#include "core/ports/authenticator.hpp"

namespace ringlet::browser {

/// The host's cryptography: pages on plain http have no crypto.subtle, so it brings its own.
class BrowserAuthenticator final : public Authenticator {
 public:
  explicit BrowserAuthenticator(std::string token) : token_(std::move(token)) {}
  Proof sign(ConstBytes message) override;
  void fill_random(Bytes out) override;

 private:
  const std::string token_;
};

}  // namespace ringlet::browser
