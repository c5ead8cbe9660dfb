#include "core/rendezvous/key_schedule.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ringlet {

namespace {

/// The first block of HKDF's expansion. It is as long as a key.
Key expand(Authenticator& authenticator, const Key& extracted, std::string_view info) {
  const ConstBytes text = std::as_bytes(std::span(info.data(), info.size()));
  std::vector<std::byte> message(text.begin(), text.end());
  message.push_back(std::byte{1});
  return authenticator.hmac(extracted, message);
}

}  // namespace

void derive_keys(Authenticator& authenticator, const Key& salt, const Key& agreed, TrafficKeys& keys) {
  Key extracted = authenticator.hmac(salt, agreed);
  keys.from_dialler = expand(authenticator, extracted, "ringlet dialler to acceptor");
  keys.from_acceptor = expand(authenticator, extracted, "ringlet acceptor to dialler");
  keys.binding = expand(authenticator, extracted, "ringlet binding");
  wipe(extracted);
}

void renew_key(Cipher& cipher) {
  const Key zeros{};
  const ConstBytes plain(zeros);
  std::array<std::byte, sizeof(Key) + Cipher::kTagBytes> sealed{};
  cipher.seal(UINT64_MAX, {}, std::span(&plain, 1), sealed);
  Key next;
  std::copy_n(sealed.begin(), next.size(), next.begin());
  cipher.set_key(next);
  wipe(next);
  wipe(sealed);
}

}  // namespace ringlet
