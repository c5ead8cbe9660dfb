#include "transport/crypto/strong_token.hpp"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <array>
#include <memory>
#include <set>

#include "core/base/check.hpp"
#include "transport/crypto/openssl.hpp"

namespace ringlet {

namespace {

// The alphabet leaves out letters that look like digits.
constexpr std::string_view kLetters = "0123456789abcdefghjkmnpqrstvwxyz";
static_assert(kLetters.size() == 32);
constexpr std::size_t kGroupLetters = 4;
// Of random letters fewer differ once in some millions; people repeat theirs.
constexpr std::size_t kLeastDifferent = 12;
// A fixed salt, since all that the two sides share is the token.
constexpr std::string_view kSalt = "ringlet token 1";
constexpr std::uint64_t kCost = 1 << 15, kMostMemory = 64u << 20;
constexpr std::uint32_t kBlock = 8, kParallel = 1;

bool is_strong(std::string_view token) {
  constexpr std::size_t kGroups = kStrongTokenBytes / kGroupLetters;
  if (token.size() != kStrongTokenBytes + kGroups - 1) return false;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool between = i % (kGroupLetters + 1) == kGroupLetters;
    if (between ? token[i] != '-' : kLetters.find(token[i]) == std::string_view::npos) return false;
  }
  return std::set<char>(token.begin(), token.end()).size() > kLeastDifferent;
}

struct FreeFunction {
  void operator()(EVP_KDF* function) const { EVP_KDF_free(function); }
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

void stretch(std::string_view token, Bytes out) {
  const std::unique_ptr<EVP_KDF, FreeFunction> scrypt(fetch_algorithm([] { return EVP_KDF_fetch(nullptr, "SCRYPT", nullptr); }, "scrypt",
                                                                      "a token that `ringlet token` has made does without"));
  const std::unique_ptr<EVP_KDF_CTX, FreeFunction> context(EVP_KDF_CTX_new(scrypt.get()));
  needs_memory(context != nullptr);
  std::string password(token), salt(kSalt);
  std::uint64_t cost = kCost, most_memory = kMostMemory;
  std::uint32_t block = kBlock, parallel = kParallel;
  const std::array<OSSL_PARAM, 7> settings{OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PASSWORD, password.data(), password.size()),
                                           OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt.data(), salt.size()),
                                           OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_N, &cost),
                                           OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_R, &block),
                                           OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_P, &parallel),
                                           OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_MAXMEM, &most_memory),
                                           OSSL_PARAM_construct_end()};
  needs_memory(EVP_KDF_derive(context.get(), unsigned_chars(out.data()), out.size(), settings.data()) == 1);
}

}  // namespace

std::string make_strong_token(ConstBytes random) {
  RINGLET_CHECK(random.size() == kStrongTokenBytes);
  std::string token;
  for (std::size_t i = 0; i < random.size(); ++i) {
    if (i > 0 && i % kGroupLetters == 0) token += '-';
    token += kLetters[static_cast<std::size_t>(random[i]) % kLetters.size()];
  }
  return token;
}

std::string strong_token(std::string_view token) {
  if (is_strong(token)) return std::string(token);
  std::array<std::byte, kStrongTokenBytes> stretched{};
  stretch(token, stretched);
  return make_strong_token(stretched);
}

}  // namespace ringlet
