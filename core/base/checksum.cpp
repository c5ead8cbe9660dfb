#include "core/base/checksum.hpp"

// xxHash is compiled in, so that programs which link Ringlet need no further library.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ringlet {

struct Checksum::State {
  XXH3_state_t xxh3;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh3); }
Checksum::~Checksum() = default;

void Checksum::update(std::span<const std::byte> bytes) { XXH3_128bits_update(&state_->xxh3, bytes.data(), bytes.size()); }

Checksum::Value Checksum::value() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  return {hash.high64, hash.low64};
}

std::string Checksum::hex() const {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t half : value())
    for (int shift = 60; shift >= 0; shift -= 4) text += kHexDigits[half >> shift & 15];
  return text;
}

std::string checksum_of(std::string_view text) {
  Checksum sum;
  sum.update(std::as_bytes(std::span(text.data(), text.size())));
  return sum.hex();
}

}  // namespace ringlet
