#include "transport/crypto/token_authenticator.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <memory>
#include <string_view>
#include <utility>

#include "transport/crypto/openssl.hpp"
#include "transport/crypto/record_cipher.hpp"

namespace ringlet {

namespace {

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
  void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
};
using PublicKey = std::unique_ptr<EVP_PKEY, Free>;

Key hmac_sha256(const void* key, std::size_t key_bytes, ConstBytes message) {
  Key code{};
  unsigned int length = 0;
  const auto* made = HMAC(EVP_sha256(), key, static_cast<int>(key_bytes), unsigned_chars(message.data()), message.size(),
                          unsigned_chars(code.data()), &length);
  needs_memory(made != nullptr && length == code.size());
  return code;
}

PublicKey load_secret(const Key& secret) {
  PublicKey key(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, unsigned_chars(secret.data()), secret.size()));
  needs_memory(key != nullptr);
  return key;
}

}  // namespace

TokenAuthenticator::TokenAuthenticator(std::string token, bool encrypts, CipherSet ciphers)
    : token_(std::move(token)), encrypts_(encrypts), ciphers_(ciphers) {
  needs_openssl();
  if (!encrypts_) return;
  constexpr std::string_view kInstead = "RINGLET_ENCRYPT=off, on all ranks, does without";
  const std::unique_ptr<EVP_PKEY_CTX, Free> agreement(
      fetch_algorithm([] { return EVP_PKEY_CTX_new_from_name(nullptr, "X25519", nullptr); }, "X25519", kInstead));
  const std::unique_ptr<EVP_CIPHER, Free> cipher(
      fetch_algorithm([] { return EVP_CIPHER_fetch(nullptr, "ChaCha20-Poly1305", nullptr); }, "ChaCha20-Poly1305", kInstead));
}

Proof TokenAuthenticator::sign(ConstBytes message) { return hmac_sha256(token_.data(), token_.size(), message); }

void TokenAuthenticator::fill_random(Bytes out) { needs_memory(RAND_bytes(unsigned_chars(out.data()), static_cast<int>(out.size())) == 1); }

Key TokenAuthenticator::hmac(const Key& key, ConstBytes message) { return hmac_sha256(key.data(), key.size(), message); }

Key TokenAuthenticator::public_key(const Key& secret) {
  const PublicKey key = load_secret(secret);
  Key out{};
  std::size_t length = out.size();
  needs_memory(EVP_PKEY_get_raw_public_key(key.get(), unsigned_chars(out.data()), &length) == 1 && length == out.size());
  return out;
}

std::optional<Key> TokenAuthenticator::agree(const Key& secret, const Key& peer) {
  const PublicKey own = load_secret(secret);
  const PublicKey other(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, unsigned_chars(peer.data()), peer.size()));
  const std::unique_ptr<EVP_PKEY_CTX, Free> context(EVP_PKEY_CTX_new(own.get(), nullptr));
  needs_memory(other != nullptr && context != nullptr && EVP_PKEY_derive_init(context.get()) == 1);
  Key agreed{};
  std::size_t length = agreed.size();
  ERR_clear_error();
  // Both calls also fail if the peer's public key would make the shared secret zero.
  const bool made = EVP_PKEY_derive_set_peer(context.get(), other.get()) == 1 &&
                    EVP_PKEY_derive(context.get(), unsigned_chars(agreed.data()), &length) == 1;
  needs_memory(made || ERR_GET_REASON(ERR_peek_error()) != ERR_R_MALLOC_FAILURE);
  if (!made || length != agreed.size() || agreed == Key{}) return std::nullopt;
  return agreed;
}

std::unique_ptr<Cipher> TokenAuthenticator::make_cipher(CipherSuite suite, const Key& key) { return make_record_cipher(suite, key); }

}  // namespace ringlet
