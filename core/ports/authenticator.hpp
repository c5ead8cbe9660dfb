#pragma once

#include <array>
#include <cstddef>

#include "core/base/bytes.hpp"

namespace ringlet {

using Proof = std::array<std::byte, 32>;

/// What the handshake asks of the platform's cryptography. Knows the token, and never gives it away.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  /// HMAC-SHA-256 of `message`; the key is the token's text, or empty where there is no token.
  virtual Proof sign(ConstBytes message) = 0;
  /// Fills `out` with bytes that nobody can foretell.
  virtual void fill_random(Bytes out) = 0;
};

}  // namespace ringlet
