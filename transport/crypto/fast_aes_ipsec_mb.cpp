#include <intel-ipsec-mb.h>

#include <algorithm>
#include <array>

#include "core/base/check.hpp"
#include "transport/crypto/fast_aes.hpp"
#include "transport/crypto/openssl.hpp"
#include "transport/crypto/record_cipher.hpp"

namespace ringlet {

namespace {

/// The functions for this processor. Calls of its AES-GCM change nothing in it, so all threads share it; it is never freed, since a thread
/// may seal while the program ends.
const IMB_MGR& functions_of_ipsec_mb() {
  static const IMB_MGR* const manager = [] {
    IMB_MGR* made = alloc_mb_mgr(0);
    needs_memory(made != nullptr);
    init_mb_mgr_auto(made, nullptr);
    return made;
  }();
  return *manager;
}

class IpsecMbCipher final : public Cipher {
 public:
  explicit IpsecMbCipher(const Key& key) { set_key(key); }
  ~IpsecMbCipher() override { OPENSSL_cleanse(&schedule_, sizeof schedule_); }
  IpsecMbCipher(const IpsecMbCipher&) = delete;
  IpsecMbCipher& operator=(const IpsecMbCipher&) = delete;

  void seal(std::uint64_t counter, ConstBytes associated, std::span<const ConstBytes> plain, Bytes sealed) override {
    begin(counter, associated);
    std::size_t done = 0;
    for (const ConstBytes part : plain) {
      functions_.gcm256_enc_update(&schedule_, &record_, unsigned_chars(sealed.data() + done), unsigned_chars(part.data()), part.size());
      done += part.size();
    }
    RINGLET_CHECK(done + kTagBytes == sealed.size());
    functions_.gcm256_enc_finalize(&schedule_, &record_, unsigned_chars(sealed.data() + done), kTagBytes);
  }

  bool open(std::uint64_t counter, ConstBytes associated, ConstBytes sealed, std::span<const Bytes> plain) override {
    std::array<std::byte, kTagBytes> tag, computed;
    RINGLET_CHECK(sealed.size() >= tag.size());
    std::copy_n(sealed.end() - static_cast<std::ptrdiff_t>(tag.size()), tag.size(), tag.begin());
    begin(counter, associated);
    std::size_t done = 0;
    for (const Bytes part : plain) {
      functions_.gcm256_dec_update(&schedule_, &record_, unsigned_chars(part.data()), unsigned_chars(sealed.data() + done), part.size());
      done += part.size();
    }
    RINGLET_CHECK(done + kTagBytes == sealed.size());
    functions_.gcm256_dec_finalize(&schedule_, &record_, unsigned_chars(computed.data()), kTagBytes);
    return CRYPTO_memcmp(tag.data(), computed.data(), kTagBytes) == 0;
  }

  void set_key(const Key& key) override { functions_.gcm256_pre(key.data(), &schedule_); }

 private:
  void begin(std::uint64_t counter, ConstBytes associated) {
    const RecordNonce nonce = nonce_of_record(counter);
    functions_.gcm256_init(&schedule_, &record_, unsigned_chars(nonce.data()), unsigned_chars(associated.data()), associated.size());
  }

  const IMB_MGR& functions_ = functions_of_ipsec_mb();
  gcm_key_data schedule_{};
  gcm_context_data record_{};
};

}  // namespace

std::unique_ptr<Cipher> make_fast_aes(const Key& key) {
  // On processors without vector AES, OpenSSL is as fast.
  if ((functions_of_ipsec_mb().features & IMB_FEATURE_VAES) == 0) return nullptr;
  return std::make_unique<IpsecMbCipher>(key);
}

}  // namespace ringlet
