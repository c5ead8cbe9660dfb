#include "transport/crypto/token_authenticator.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "core/base/check.hpp"
#include "transport/crypto/openssl_bytes.hpp"
#include "transport/crypto/record_cipher.hpp"

namespace ringlet {

namespace {

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
};
using PublicKey = std::unique_ptr<EVP_PKEY, Free>;

Key hmac_sha256(const void* key, std::size_t key_bytes, ConstBytes message) {
  Key code{};
  unsigned int length = 0;
  const auto* made = HMAC(EVP_sha256(), key, static_cast<int>(key_bytes), unsigned_chars(message.data()), message.size(),
                          unsigned_chars(code.data()), &length);
  RINGLET_CHECK(made != nullptr && length == code.size());
  return code;
}

PublicKey load_secret(const Key& secret) {
  PublicKey key(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, unsigned_chars(secret.data()), secret.size()));
  RINGLET_CHECK(key != nullptr);
  return key;
}

}  // namespace

Proof TokenAuthenticator::sign(ConstBytes message) { return hmac_sha256(token_.data(), token_.size(), message); }

void TokenAuthenticator::fill_random(Bytes out) {
  // Without random numbers neither nonces nor keys prove anything, so the process must stop here.
  RINGLET_CHECK(RAND_bytes(unsigned_chars(out.data()), static_cast<int>(out.size())) == 1);
}

Key TokenAuthenticator::hmac(const Key& key, ConstBytes message) { return hmac_sha256(key.data(), key.size(), message); }

Key TokenAuthenticator::public_key(const Key& secret) {
  const PublicKey key = load_secret(secret);
  Key out{};
  std::size_t length = out.size();
  RINGLET_CHECK(EVP_PKEY_get_raw_public_key(key.get(), unsigned_chars(out.data()), &length) == 1 && length == out.size());
  return out;
}

std::optional<Key> TokenAuthenticator::agree(const Key& secret, const Key& peer) {
  const PublicKey own = load_secret(secret);
  const PublicKey other(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, unsigned_chars(peer.data()), peer.size()));
  const std::unique_ptr<EVP_PKEY_CTX, Free> context(EVP_PKEY_CTX_new(own.get(), nullptr));
  RINGLET_CHECK(other != nullptr && context != nullptr && EVP_PKEY_derive_init(context.get()) == 1);
  Key agreed{};
  std::size_t length = agreed.size();
  // Both calls fail if the peer's public key would make the shared secret zero.
  const bool made = EVP_PKEY_derive_set_peer(context.get(), other.get()) == 1 &&
                    EVP_PKEY_derive(context.get(), unsigned_chars(agreed.data()), &length) == 1;
  if (!made || length != agreed.size() || agreed == Key{}) return std::nullopt;
  return agreed;
}

std::unique_ptr<Cipher> TokenAuthenticator::make_cipher(const Key& key) { return std::make_unique<RecordCipher>(key); }

}  // namespace ringlet
