#include "tools/machines/machine_key.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <memory>
#include <span>

#include "core/base/check.hpp"
#include "core/base/refuse.hpp"
#include "transport/crypto/openssl.hpp"
#include "transport/crypto/token_authenticator.hpp"

namespace ringlet::machines {

namespace {

using tokens::PrivateFolder;

constexpr char kKeyFile[] = "machine";
constexpr std::size_t kMaxKeyFileBytes = 256;
constexpr std::size_t kHexBytes = 2 * std::tuple_size_v<PublicKey>;
constexpr std::size_t kFingerprintBytes = 12;
constexpr tokens::FolderWords kKeyWords{"this machine's key",
                                        "this machine's key is no secret; remove it to get another one, and pair this machine again",
                                        "it is no machine's key; restore it, or remove it to get another one, and pair this machine again"};

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using OpensslKey = std::unique_ptr<EVP_PKEY, FreeKey>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, FreeKey>;

OpensslKey openssl_key(const Key& secret) {
  OpensslKey key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, unsigned_chars(secret.data()), secret.size()));
  RINGLET_CHECK(key != nullptr);
  return key;
}

std::string hex_of(ConstBytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

std::optional<unsigned> digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return static_cast<unsigned>(letter - '0');
  if (letter >= 'a' && letter <= 'f') return static_cast<unsigned>(letter - 'a' + 10);
  if (letter >= 'A' && letter <= 'F') return static_cast<unsigned>(letter - 'A' + 10);
  return std::nullopt;
}

std::optional<std::array<std::byte, 32>> bytes_of_hex(std::string_view hex) {
  std::array<std::byte, 32> bytes{};
  if (hex.size() != kHexBytes) return std::nullopt;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto high = digit_of(hex[2 * i]), low = digit_of(hex[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    bytes[i] = static_cast<std::byte>(*high << 4 | *low);
  }
  return bytes;
}

void wipe_text(std::string& text) { wipe(std::as_writable_bytes(std::span(text.data(), text.size()))); }

/// The file has the secret and the public key, so that a damaged one does not pass for another machine.
std::string file_text(const MachineKey& key, const Key& secret) { return hex_of(secret) + " " + to_hex(key.public_key()) + "\n"; }

std::optional<MachineKey> parse_file(std::string_view text) {
  if (text.size() != 2 * kHexBytes + 2 || text[kHexBytes] != ' ' || text.back() != '\n') return std::nullopt;
  auto secret = bytes_of_hex(text.substr(0, kHexBytes));
  const auto told = parse_public_key(text.substr(kHexBytes + 1, kHexBytes));
  if (!secret || !told) return std::nullopt;
  MachineKey key(*secret);
  wipe(*secret);
  if (key.public_key() != *told) return std::nullopt;
  return key;
}

std::optional<MachineKey> read_key(const PrivateFolder& folder) {
  std::optional<std::string> text = folder.read(kKeyFile, kMaxKeyFileBytes);
  if (!text) return std::nullopt;
  std::optional<MachineKey> key = parse_file(*text);
  wipe_text(*text);
  if (!key) refuse(fmt::format("'{}' is damaged, so {}", folder.path_of(kKeyFile), kKeyWords.too_long));
  return key;
}

}  // namespace

std::string fingerprint(const PublicKey& key) {
  std::array<std::byte, 32> digest{};
  RINGLET_CHECK(EVP_Digest(key.data(), key.size(), unsigned_chars(digest.data()), nullptr, EVP_sha256(), nullptr) == 1);
  std::string text;
  for (std::size_t i = 0; i < kFingerprintBytes; i += 2) text += (i == 0 ? "" : "-") + hex_of(ConstBytes(digest).subspan(i, 2));
  return text;
}

std::string to_hex(const PublicKey& key) { return hex_of(key); }

std::optional<PublicKey> parse_public_key(std::string_view hex) { return bytes_of_hex(hex); }

bool is_signed(const PublicKey& key, ConstBytes message, const Signature& signature) {
  const OpensslKey signer(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, unsigned_chars(key.data()), key.size()));
  const DigestContext context(EVP_MD_CTX_new());
  return signer && context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, signer.get()) == 1 &&
         EVP_DigestVerify(context.get(), unsigned_chars(signature.data()), signature.size(), unsigned_chars(message.data()),
                          message.size()) == 1;
}

MachineKey::MachineKey(const Key& secret) : secret_(secret) {
  std::size_t length = public_.size();
  RINGLET_CHECK(EVP_PKEY_get_raw_public_key(openssl_key(secret).get(), unsigned_chars(public_.data()), &length) == 1 &&
                length == public_.size());
}

Signature MachineKey::sign(ConstBytes message) const {
  const OpensslKey key = openssl_key(secret_);
  const DigestContext context(EVP_MD_CTX_new());
  Signature signature{};
  std::size_t length = signature.size();
  RINGLET_CHECK(context != nullptr && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
                EVP_DigestSign(context.get(), unsigned_chars(signature.data()), &length, unsigned_chars(message.data()), message.size()) ==
                    1 &&
                length == signature.size());
  return signature;
}

std::string MachineKey::path(const Variables& variables) { return tokens::config_folder(variables, kKeyWords.contents) + "/" + kKeyFile; }

MachineKey MachineKey::load(const Variables& variables) {
  const PrivateFolder folder =
      PrivateFolder::make(tokens::config_folder(variables, kKeyWords.contents), PrivateFolder::Access::others_may_list, kKeyWords);
  if (auto key = read_key(folder)) return *key;
  Key secret{};
  TokenAuthenticator("").fill_random(secret);
  const MachineKey fresh(secret);
  std::string text = file_text(fresh, secret);
  wipe(secret);
  const bool saved = folder.write(kKeyFile, text, tokens::Replace::no);
  wipe_text(text);
  if (saved) return fresh;
  // Another process has made one meanwhile.
  if (auto key = read_key(folder)) return *key;
  refuse(fmt::format("'{}' was removed while it was read; try again", folder.path_of(kKeyFile)));
}

}  // namespace ringlet::machines
