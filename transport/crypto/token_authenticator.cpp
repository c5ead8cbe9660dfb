#include "transport/crypto/token_authenticator.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "core/base/check.hpp"

namespace ringlet {

Proof TokenAuthenticator::sign(ConstBytes message) {
  Proof proof{};
  unsigned int length = 0;
  const auto* made =
      HMAC(EVP_sha256(), token_.data(), static_cast<int>(token_.size()), reinterpret_cast<const unsigned char*>(message.data()),
           message.size(), reinterpret_cast<unsigned char*>(proof.data()), &length);
  RINGLET_CHECK(made != nullptr && length == proof.size());
  return proof;
}

void TokenAuthenticator::fill_random(Bytes out) {
  // Without randomness nobody is who they seem: better no process than such a one.
  RINGLET_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(out.size())) == 1);
}

}  // namespace ringlet
