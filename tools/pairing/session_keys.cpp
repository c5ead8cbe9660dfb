#include "tools/pairing/session_keys.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>

#include <array>
#include <memory>
#include <vector>

#include "core/base/check.hpp"

namespace ringlet::pairing {

namespace {

constexpr std::size_t kKeyBytes = 32, kNonceBytes = 12;

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
int length_of(std::string_view text) { return static_cast<int>(text.size()); }

struct FreeContext {
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

std::string hash(std::string_view text) {
  std::string digest(kKeyBytes, '\0');
  RINGLET_CHECK(EVP_Digest(text.data(), text.size(), bytes_of(digest), nullptr, EVP_sha256(), nullptr) == 1);
  return digest;
}

/// One half of HKDF. The input of the first half is a salt, that of the second a label.
Secret hkdf(int half, std::string_view key, std::string_view input) {
  std::array<unsigned char, kKeyBytes> out{};
  std::size_t length = out.size();
  const std::unique_ptr<EVP_PKEY_CTX, FreeContext> context(EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr));
  const bool extracts = half == EVP_PKEY_HKDEF_MODE_EXTRACT_ONLY;
  const bool derived = context && EVP_PKEY_derive_init(context.get()) > 0 && EVP_PKEY_CTX_hkdf_mode(context.get(), half) > 0 &&
                       EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()) > 0 &&
                       EVP_PKEY_CTX_set1_hkdf_key(context.get(), bytes_of(key), length_of(key)) > 0 &&
                       (extracts ? EVP_PKEY_CTX_set1_hkdf_salt(context.get(), bytes_of(input), length_of(input))
                                 : EVP_PKEY_CTX_add1_hkdf_info(context.get(), bytes_of(input), length_of(input))) > 0 &&
                       EVP_PKEY_derive(context.get(), out.data(), &length) > 0;
  // A wrong key would be insecure, so the process stops instead.
  RINGLET_CHECK(derived && length == out.size());
  Secret secret(std::string_view(reinterpret_cast<const char*>(out.data()), out.size()));
  OPENSSL_cleanse(out.data(), out.size());
  return secret;
}

constexpr std::array<unsigned char, kNonceBytes> kNonce{};
constexpr std::string_view kTokenRole = "token", kHostRole = "host machine", kNewcomerRole = "newcomer machine";

}  // namespace

SessionKeys::SessionKeys(const Secret& shared, std::string transcript)
    : extracted_(hkdf(EVP_PKEY_HKDEF_MODE_EXTRACT_ONLY, shared.view(), hash(transcript))), transcript_(std::move(transcript)) {}

Secret SessionKeys::derive(std::string_view role) const {
  return hkdf(EVP_PKEY_HKDEF_MODE_EXPAND_ONLY, extracted_.view(), "ringlet pair " + std::string(role));
}

std::string SessionKeys::prove(std::string_view role, std::string_view more) const {
  const Secret key = derive(role);
  const std::string message = transcript_ + std::string(more);
  std::string proof(kProofBytes, '\0');
  unsigned int length = 0;
  const auto* made = HMAC(EVP_sha256(), key.view().data(), length_of(key.view()), bytes_of(std::string_view(message)), message.size(),
                          bytes_of(proof), &length);
  RINGLET_CHECK(made != nullptr && length == proof.size());
  return proof;
}

std::string SessionKeys::newcomer_proof() const { return prove("newcomer", {}); }
std::string SessionKeys::host_proof() const { return prove("host", newcomer_proof()); }
std::string SessionKeys::receipt_proof(std::string_view sealed) const { return prove("receipt", newcomer_proof() + std::string(sealed)); }

std::string SessionKeys::seal(const Secret& token) const { return seal(kTokenRole, token.view()); }
std::string SessionKeys::seal_host(const PairedMachine& host) const { return seal(kHostRole, host.key + host.name); }
std::string SessionKeys::seal_newcomer(const PairedMachine& newcomer) const { return seal(kNewcomerRole, newcomer.key + newcomer.name); }

std::optional<Secret> SessionKeys::open(std::string_view sealed_token) const { return open(kTokenRole, sealed_token); }

std::optional<PairedMachine> SessionKeys::open_host(std::string_view sealed, const std::string& name) const {
  return open_machine(kHostRole, sealed, name);
}

std::optional<PairedMachine> SessionKeys::open_newcomer(std::string_view sealed, const std::string& name) const {
  return open_machine(kNewcomerRole, sealed, name);
}

std::optional<PairedMachine> SessionKeys::open_machine(std::string_view role, std::string_view sealed, const std::string& name) const {
  const auto opened = open(role, sealed);
  if (!opened || opened->view().size() <= kMachineKeyBytes || opened->view().substr(kMachineKeyBytes) != name) return std::nullopt;
  return PairedMachine{name, std::string(opened->view().substr(0, kMachineKeyBytes))};
}

std::string SessionKeys::seal(std::string_view role, std::string_view text) const {
  const Secret key = derive(role);
  std::string sealed(text.size() + kSealBytes, '\0');
  int length = 0;
  const CipherContext context(EVP_CIPHER_CTX_new());
  const bool done =
      context && EVP_EncryptInit_ex(context.get(), EVP_chacha20_poly1305(), nullptr, bytes_of(key.view()), kNonce.data()) == 1 &&
      EVP_EncryptUpdate(context.get(), nullptr, &length, bytes_of(std::string_view(transcript_)), length_of(transcript_)) == 1 &&
      EVP_EncryptUpdate(context.get(), bytes_of(sealed), &length, bytes_of(text), length_of(text)) == 1 &&
      EVP_EncryptFinal_ex(context.get(), bytes_of(sealed) + length, &length) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(kSealBytes), bytes_of(sealed) + text.size()) == 1;
  RINGLET_CHECK(done);
  return sealed;
}

std::optional<Secret> SessionKeys::open(std::string_view role, std::string_view sealed) const {
  if (sealed.size() <= kSealBytes) return std::nullopt;
  const Secret key = derive(role);
  const std::string_view hidden = sealed.substr(0, sealed.size() - kSealBytes);
  std::string seal(sealed.substr(hidden.size()));
  std::vector<unsigned char> plain(hidden.size());
  int length = 0;
  const CipherContext context(EVP_CIPHER_CTX_new());
  const bool opened =
      context && EVP_DecryptInit_ex(context.get(), EVP_chacha20_poly1305(), nullptr, bytes_of(key.view()), kNonce.data()) == 1 &&
      EVP_DecryptUpdate(context.get(), nullptr, &length, bytes_of(std::string_view(transcript_)), length_of(transcript_)) == 1 &&
      EVP_DecryptUpdate(context.get(), plain.data(), &length, bytes_of(hidden), length_of(hidden)) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, static_cast<int>(kSealBytes), seal.data()) == 1 &&
      EVP_DecryptFinal_ex(context.get(), plain.data() + length, &length) == 1;
  std::optional<Secret> text;
  if (opened) text = Secret(std::string_view(reinterpret_cast<const char*>(plain.data()), plain.size()));
  OPENSSL_cleanse(plain.data(), plain.size());
  return text;
}

bool same_proof(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace ringlet::pairing
