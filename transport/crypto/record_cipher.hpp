#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/ports/authenticator.hpp"

struct evp_cipher_ctx_st;

namespace ringlet {

using RecordNonce = std::array<std::byte, 12>;
RecordNonce nonce_of_record(std::uint64_t counter);

/// The cipher of native programs: the fastest that there is here.
std::unique_ptr<Cipher> make_record_cipher(CipherSuite suite, const Key& key);

/// A cipher on OpenSSL's libcrypto.
class RecordCipher final : public Cipher {
 public:
  RecordCipher(CipherSuite suite, const Key& key);

  void seal(std::uint64_t counter, ConstBytes associated, std::span<const ConstBytes> plain, Bytes sealed) override;
  bool open(std::uint64_t counter, ConstBytes associated, ConstBytes sealed, std::span<const Bytes> plain) override;
  void set_key(const Key& key) override;

 private:
  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  void begin(std::uint64_t counter, ConstBytes associated, bool seals);

  const std::unique_ptr<evp_cipher_ctx_st, Free> context_;
};

}  // namespace ringlet
