#include "wasm/cpp/browser_authenticator.hpp"

#include <cstring>
#include <vector>

#include "core/wire/frame.hpp"
#include "wasm/cpp/imports.hpp"

namespace ringlet::browser {

namespace {

/// The cipher of the host, whose functions take and return bytes in one contiguous block.
class BrowserCipher final : public Cipher {
 public:
  explicit BrowserCipher(const Key& key) : key_(key) {}
  ~BrowserCipher() override { wipe(key_); }

  void seal(std::uint64_t counter, ConstBytes associated, std::span<const ConstBytes> plain, Bytes sealed) override {
    std::size_t done = 0;
    for (const ConstBytes part : plain) {
      if (!part.empty()) std::memcpy(sealed.data() + done, part.data(), part.size());
      done += part.size();
    }
    ringlet_seal(key_.data(), nonce_of(counter), associated.data(), associated.size(), sealed.data(), done);
  }

  bool open(std::uint64_t counter, ConstBytes associated, ConstBytes sealed, std::span<const Bytes> plain) override {
    const std::size_t bytes = sealed.size() - kTagBytes;
    const bool one_part = plain.size() == 1;
    if (!one_part && opened_.size() < bytes) opened_.resize(bytes);
    std::byte* const out = one_part ? plain[0].data() : opened_.data();
    if (ringlet_open(key_.data(), nonce_of(counter), associated.data(), associated.size(), sealed.data(), bytes, out) == 0) return false;
    if (one_part) return true;
    std::size_t done = 0;
    for (const Bytes part : plain) {
      if (!part.empty()) std::memcpy(part.data(), opened_.data() + done, part.size());
      done += part.size();
    }
    return true;
  }

  void set_key(const Key& key) override { key_ = key; }

 private:
  const std::byte* nonce_of(std::uint64_t counter) {
    detail::store_le(nonce_.data() + 4, counter);
    return nonce_.data();
  }

  Key key_;
  std::array<std::byte, 12> nonce_{};
  std::vector<std::byte> opened_;
};

Key sign_with(const void* key, std::size_t key_bytes, ConstBytes message) {
  Key code;
  ringlet_sign(static_cast<const char*>(key), key_bytes, message.data(), message.size(), code.data());
  return code;
}

}  // namespace

Proof BrowserAuthenticator::sign(ConstBytes message) { return sign_with(token_.data(), token_.size(), message); }

void BrowserAuthenticator::fill_random(Bytes out) { ringlet_random(out.data(), out.size()); }

Key BrowserAuthenticator::hmac(const Key& key, ConstBytes message) { return sign_with(key.data(), key.size(), message); }

Key BrowserAuthenticator::public_key(const Key& secret) {
  Key out;
  ringlet_public_key(secret.data(), out.data());
  return out;
}

std::optional<Key> BrowserAuthenticator::agree(const Key& secret, const Key& peer) {
  Key agreed;
  if (ringlet_agree(secret.data(), peer.data(), agreed.data()) == 0) return std::nullopt;
  return agreed;
}

std::unique_ptr<Cipher> BrowserAuthenticator::make_cipher(CipherSuite, const Key& key) { return std::make_unique<BrowserCipher>(key); }

}  // namespace ringlet::browser
