#include "transport/crypto/record_cipher.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/check.hpp"
#include "core/wire/frame.hpp"
#include "transport/crypto/fast_aes.hpp"
#include "transport/crypto/openssl.hpp"

namespace ringlet {

RecordNonce nonce_of_record(std::uint64_t counter) {
  RecordNonce nonce{};
  detail::store_le(nonce.data() + 4, counter);
  return nonce;
}

std::unique_ptr<Cipher> make_record_cipher(CipherSuite suite, const Key& key) {
  auto fast = suite == CipherSuite::aes256_gcm ? make_fast_aes(key) : nullptr;
  return fast ? std::move(fast) : std::make_unique<RecordCipher>(suite, key);
}

void RecordCipher::Free::operator()(evp_cipher_ctx_st* context) const { EVP_CIPHER_CTX_free(context); }

RecordCipher::RecordCipher(CipherSuite suite, const Key& key) : context_(EVP_CIPHER_CTX_new()) {
  const auto* cipher = suite == CipherSuite::aes256_gcm ? EVP_aes_256_gcm() : EVP_chacha20_poly1305();
  needs_memory(context_ != nullptr && EVP_CipherInit_ex(context_.get(), cipher, nullptr, unsigned_chars(key.data()), nullptr, 1) == 1);
}

void RecordCipher::set_key(const Key& key) {
  needs_memory(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, unsigned_chars(key.data()), nullptr, 1) == 1);
}

void RecordCipher::begin(std::uint64_t counter, ConstBytes associated, bool seals) {
  const RecordNonce nonce = nonce_of_record(counter);
  int length = 0;
  needs_memory(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, unsigned_chars(nonce.data()), seals ? 1 : 0) == 1);
  if (associated.empty()) return;
  needs_memory(EVP_CipherUpdate(context_.get(), nullptr, &length, unsigned_chars(associated.data()), static_cast<int>(associated.size())) ==
               1);
}

void RecordCipher::seal(std::uint64_t counter, ConstBytes associated, std::span<const ConstBytes> plain, Bytes sealed) {
  begin(counter, associated, true);
  int length = 0;
  std::size_t done = 0;
  for (const ConstBytes part : plain) {
    if (part.empty()) continue;
    needs_memory(EVP_CipherUpdate(context_.get(), unsigned_chars(sealed.data() + done), &length, unsigned_chars(part.data()),
                                  static_cast<int>(part.size())) == 1);
    done += part.size();
  }
  std::byte* const tag = sealed.data() + done;
  RINGLET_CHECK(done + kTagBytes == sealed.size());
  needs_memory(EVP_CipherFinal_ex(context_.get(), unsigned_chars(tag), &length) == 1 &&
               EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(kTagBytes), tag) == 1);
}

bool RecordCipher::open(std::uint64_t counter, ConstBytes associated, ConstBytes sealed, std::span<const Bytes> plain) {
  std::array<std::byte, kTagBytes> tag;
  RINGLET_CHECK(sealed.size() >= tag.size());
  std::copy_n(sealed.end() - static_cast<std::ptrdiff_t>(tag.size()), tag.size(), tag.begin());
  begin(counter, associated, false);
  int length = 0;
  std::size_t done = 0;
  for (const Bytes part : plain) {
    if (part.empty()) continue;
    needs_memory(EVP_CipherUpdate(context_.get(), unsigned_chars(part.data()), &length, unsigned_chars(sealed.data() + done),
                                  static_cast<int>(part.size())) == 1);
    done += part.size();
  }
  RINGLET_CHECK(done + kTagBytes == sealed.size());
  needs_memory(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, static_cast<int>(kTagBytes), tag.data()) == 1);
  std::array<unsigned char, kTagBytes> rest;
  return EVP_CipherFinal_ex(context_.get(), rest.data(), &length) == 1;
}

}  // namespace ringlet
